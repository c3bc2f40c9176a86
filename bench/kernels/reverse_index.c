/* reverse_index: which pages link to a target, from the text of the pages. */
#include "mapreduce.h"

enum { PAGES = 24000, STORED = 6000, PAGE_BYTES = 40000, TARGETS = 50000, LONGEST = 24 };

struct entry {
	char target[LONGEST];
	uint32_t *pages;
	size_t used, room;
};
struct index {
	struct entry *entries; /* a table with open addresses */
	size_t used;
};
struct library {
	char *text; /* STORED × PAGE_BYTES; page n has the text n % STORED */
	struct index part[MR_WORKERS];
};
enum { SLOTS = 4 * TARGETS };

/* Where the target's name begins behind the next `<a href="`, or nothing. */
static const char *find_link(const char *at, const char *end)
{
	static const char mark[] = "<a href=\"";
	while ((at = memchr(at, '<', end - at))) {
		if ((size_t)(end - at) < sizeof mark - 1)
			return NULL;
		if (!memcmp(at, mark, sizeof mark - 1))
			return at + sizeof mark - 1;
		at++;
	}
	return NULL;
}

static void copy_target(const char *at, const char *end, char *target)
{
	size_t n = 0;
	while (at < end && *at != '"' && n < LONGEST - 1)
		target[n++] = *at++;
	target[n] = 0;
}

static uint32_t hash_target(const char *target)
{
	uint32_t hash = 2166136261;
	while (*target)
		hash = (hash ^ (unsigned char)*target++) * 16777619;
	return hash;
}

static struct entry *find_entry(struct index *index, const char *target)
{
	size_t at = hash_target(target) % SLOTS;
	while (index->entries[at].target[0] && strcmp(index->entries[at].target, target))
		at = (at + 1) % SLOTS;
	if (!index->entries[at].target[0]) {
		strcpy(index->entries[at].target, target);
		if (++index->used == SLOTS)
			exit(1);
	}
	return &index->entries[at];
}

static void add_page(struct entry *entry, uint32_t page)
{
	if (entry->used == entry->room) {
		entry->room = entry->room ? 2 * entry->room : 16;
		entry->pages = realloc(entry->pages, entry->room * sizeof *entry->pages);
		if (!entry->pages)
			exit(1);
	}
	entry->pages[entry->used++] = page;
}

static void map(void *shared, int worker, size_t begin, size_t end)
{
	struct library *library = shared;
	char target[LONGEST];
	for (size_t page = begin; page < end; page++) {
		const char *at = library->text + page % STORED * PAGE_BYTES, *stop = at + PAGE_BYTES;
		while ((at = find_link(at, stop))) {
			copy_target(at, stop, target);
			add_page(find_entry(&library->part[worker], target), page);
		}
	}
}

static void reduce(struct library *library)
{
	for (int w = 1; w < MR_WORKERS; w++)
		for (size_t slot = 0; slot < SLOTS; slot++) {
			const struct entry *from = &library->part[w].entries[slot];
			for (size_t i = 0; i < from->used; i++)
				add_page(find_entry(&library->part[0], from->target), from->pages[i]);
		}
}

MR_OUTSIDE static char *make_text(void)
{
	char *text = mr_allocate((size_t)STORED * PAGE_BYTES), link[64];
	uint64_t seed = 9;
	for (size_t page = 0; page < STORED; page++) {
		char *at = text + page * PAGE_BYTES, *end = at + PAGE_BYTES;
		while (at < end) {
			uint64_t r = mr_random(&seed);
			int n = r % 16 ? snprintf(link, sizeof link, "<p>%llx ", (unsigned long long)r)
			              : snprintf(link, sizeof link, "<a href=\"page%llu.html\">", (unsigned long long)(r >> 8) % TARGETS);
			if (n > end - at)
				n = end - at;
			memcpy(at, link, n);
			at += n;
		}
	}
	return text;
}

/* Equal however the table is laid out: each target's own hash, summed. */
MR_OUTSIDE static uint64_t checksum(const struct index *index)
{
	uint64_t sum = 0;
	for (size_t slot = 0; slot < SLOTS; slot++) {
		const struct entry *e = &index->entries[slot];
		sum += mr_checksum(e->target, strlen(e->target)) ^ mr_checksum(e->pages, e->used * sizeof *e->pages);
	}
	return sum;
}

int main(void)
{
	static struct library library;
	library.text = make_text();
	for (int w = 0; w < MR_WORKERS; w++)
		library.part[w].entries = mr_allocate(SLOTS * sizeof(struct entry));
	double start = mr_seconds();
	mr_run(PAGES, map, &library);
	reduce(&library);
	double seconds = mr_seconds() - start;
	printf("targets=%zu\n", library.part[0].used);
	return mr_report("reverse_index", checksum(&library.part[0]), seconds);
}
