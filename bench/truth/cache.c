/* Chases of pointers through memory that is near, less near and far, two steps for each call, and
 * a long walk in one call. The thread's clock tells the truth of batches. */
#include "truth.h"

enum { LINE = 64, NEAR = 16 << 10, MIDDLE = 256 << 10, FAR = 64 << 20 };

struct line {
	struct line *next;
	char rest[LINE - sizeof(struct line *)];
};

#define STEP(name)                                         \
	ALONE uint64_t name(uint64_t x)                        \
	{                                                      \
		const struct line *at = (const void *)(uintptr_t)x; \
		return (uint64_t)(uintptr_t)at->next->next;        \
	}
STEP(near_step)
STEP(middle_step)
STEP(far_step)

static uint64_t *walked;

ALONE uint64_t walk(uint64_t x)
{
	for (unsigned i = 0; i < FAR / 16 / sizeof *walked; i++)
		x += walked[i];
	return x;
}

/* A ring of all lines of a stretch of memory, in an order that cannot be foreseen. */
OUTSIDE static uint64_t ring(size_t bytes)
{
	size_t count = bytes / LINE;
	struct line *lines = aligned_alloc(4096, bytes);
	size_t *order = malloc(count * sizeof *order);
	uint64_t state = 88172645463325252u;
	for (size_t i = 0; i < count; i++)
		order[i] = i;
	for (size_t i = count - 1; i > 0; i--) {
		size_t j = chance(&state) % (i + 1), other = order[i];
		order[i] = order[j];
		order[j] = other;
	}
	for (size_t i = 0; i < count; i++)
		lines[order[i]].next = &lines[order[(i + 1) % count]];
	free(order);
	return (uint64_t)(uintptr_t)lines;
}

OUTSIDE static void chase(unsigned rounds)
{
	struct part parts[] = {{"near_step", near_step, 0},
	                       {"middle_step", middle_step, 0},
	                       {"far_step", far_step, 0},
	                       {"walk", walk, 0}};
	uint64_t at[] = {ring(NEAR), ring(MIDDLE), ring(FAR), 0};
	const unsigned times[] = {400000, 100000, 6000, 2};
	walked = calloc(1, FAR / 16);
	memset(walked, 1, FAR / 16);
	begin();
	for (unsigned round = 0; round < rounds; round++)
		for (unsigned i = 0; i < 4; i++)
			at[i] = timed(&parts[i], times[i], at[i]);
	sink = at[0] + at[1] + at[2] + at[3];
	tell(parts, 4);
}

SCENARIOS({"chase", chase})
