/* Tiny functions whose work the processor does beside that of others. perf tells the truth.
 *
 * near: getters of an object that is at hand; missing: the same while a load from far memory
 * is under way, whose value nobody needs yet. */
#include "truth.h"

struct object {
	uint64_t width, height, depth, mass;
};

ALONE uint64_t get_width(const struct object *o) { return o->width; }
ALONE uint64_t get_height(const struct object *o) { return o->height; }
ALONE uint64_t get_depth(const struct object *o) { return o->depth; }
ALONE uint64_t get_mass(const struct object *o) { return o->mass; }

ALONE void set_mass(struct object *o, uint64_t mass) { o->mass = mass; }

ALONE uint64_t volume(const struct object *o)
{
	return get_width(o) * get_height(o) * get_depth(o);
}

ALONE uint64_t weigh(struct object *objects, unsigned count)
{
	uint64_t all = 0;
	for (unsigned i = 0; i < count; i++) {
		struct object *o = &objects[i];
		all += volume(o) * get_mass(o);
		set_mass(o, all & 15);
	}
	return all;
}

/* Something that takes its time, for the others to be a part of. */
WORK(settle, 400)

enum { OBJECTS = 64, FAR = 1 << 24 };
static struct object objects[OBJECTS];
static uint64_t *far_memory;

ALONE uint64_t fetch(uint64_t at) { return far_memory[at % FAR]; }

ALONE uint64_t visit(uint64_t at, unsigned steps)
{
	uint64_t all = 0;
	for (unsigned i = 0; i < steps; i++) {
		const struct object *o = &objects[i % OBJECTS];
		uint64_t far_value = fetch(at);
		at = at * 6364136223846793005u + 1442695040888963407u;
		all += get_width(o) + get_height(o);
		all ^= get_depth(o) + get_mass(o);
		all += far_value;
	}
	return all + at;
}

OUTSIDE static void prepare(void)
{
	for (unsigned i = 0; i < OBJECTS; i++)
		objects[i] = (struct object){i + 1, i + 2, i + 3, i & 7};
}

OUTSIDE static void near_objects(unsigned rounds)
{
	prepare();
	for (unsigned i = 0; i < rounds * 1000; i++) {
		sink += weigh(objects, OBJECTS);
		sink = settle(sink);
		jitter(200);
	}
}

OUTSIDE static void missing(unsigned rounds)
{
	prepare();
	far_memory = malloc(FAR * sizeof *far_memory);
	for (unsigned i = 0; i < FAR; i++)
		far_memory[i] = i;
	begin();
	for (unsigned i = 0; i < rounds; i++) {
		sink = visit(sink, 20000);
		sink = repeat(settle, 500, sink);
		jitter(100000);
	}
	free(far_memory);
}

SCENARIOS({"near", near_objects}, {"missing", missing})
