/* word_count: how often each word is in a text. Each worker keeps its words sorted and finds
 * one by bisection; the lists are merged and the most frequent words are the result. */
#include "mapreduce.h"
#include <ctype.h>

enum { TEXT_BYTES = 56 << 20, VOCABULARY = 20000, LONGEST = 12, TOP = 100 };

struct entry {
	char word[LONGEST];
	unsigned count;
};
struct list {
	struct entry *entries;
	size_t used, room;
};
struct count {
	char *text; /* words between single blanks */
	struct list part[MR_WORKERS];
};

/* Index of the word, or of the first that is greater. */
static size_t search(const struct list *list, const char *word)
{
	size_t low = 0, high = list->used;
	while (low < high) {
		size_t middle = (low + high) / 2;
		if (strcmp(list->entries[middle].word, word) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static void insert(struct list *list, size_t at, const char *word, unsigned count)
{
	if (list->used == list->room) {
		list->room = list->room ? 2 * list->room : 1024;
		list->entries = realloc(list->entries, list->room * sizeof *list->entries);
		if (!list->entries)
			exit(1);
	}
	memmove(&list->entries[at + 1], &list->entries[at], (list->used - at) * sizeof *list->entries);
	list->entries[at] = (struct entry){.count = count};
	strcpy(list->entries[at].word, word);
	list->used++;
}

static void add_word(struct list *list, const char *word, unsigned count)
{
	size_t at = search(list, word);
	if (at < list->used && !strcmp(list->entries[at].word, word))
		list->entries[at].count += count;
	else
		insert(list, at, word, count);
}

/* A word belongs to the worker in whose part it begins. */
static void map(void *shared, int worker, size_t begin, size_t end)
{
	struct count *c = shared;
	const char *text = c->text;
	char word[LONGEST];
	size_t at = begin;
	while (begin && at < TEXT_BYTES && text[at - 1] != ' ')
		at++;
	while (at < end) {
		size_t n = 0;
		for (; at < TEXT_BYTES && text[at] != ' '; at++)
			if (n < LONGEST - 1)
				word[n++] = toupper((unsigned char)text[at]);
		word[n] = 0;
		at++;
		add_word(&c->part[worker], word, 1);
	}
}

static int by_count(const void *a, const void *b)
{
	const struct entry *x = a, *y = b;
	return x->count != y->count ? (x->count < y->count ? 1 : -1) : strcmp(x->word, y->word);
}

static void reduce(struct count *c)
{
	for (int w = 1; w < MR_WORKERS; w++)
		for (size_t i = 0; i < c->part[w].used; i++)
			add_word(&c->part[0], c->part[w].entries[i].word, c->part[w].entries[i].count);
	qsort(c->part[0].entries, c->part[0].used, sizeof *c->part[0].entries, by_count);
}

/* Words drawn so that the frequent ones are very frequent, as in a language. */
MR_OUTSIDE static char *make_text(void)
{
	static char words[VOCABULARY][LONGEST];
	char *text = mr_allocate(TEXT_BYTES);
	uint64_t seed = 8;
	for (size_t i = 0; i < VOCABULARY; i++) {
		uint64_t r = mr_random(&seed);
		size_t length = 2 + (r & 7);
		r >>= 3;
		for (size_t n = 0; n < length; n++, r /= 26)
			words[i][n] = (n ? 'a' : r & 64 ? 'A' : 'a') + r % 26;
	}
	for (size_t at = 0; at < TEXT_BYTES;) {
		uint64_t r = mr_random(&seed);
		double even = (r >> 11) * 0x1p-53;
		const char *word = words[(size_t)(even * even * even * VOCABULARY)];
		while (*word && at < TEXT_BYTES - 1)
			text[at++] = *word++;
		text[at++] = ' ';
	}
	return text;
}

int main(void)
{
	static struct count c;
	c.text = make_text();
	double start = mr_seconds();
	mr_run(TEXT_BYTES, map, &c);
	reduce(&c);
	double seconds = mr_seconds() - start;
	struct entry *top = c.part[0].entries;
	printf("words=%zu first=%s:%u\n", c.part[0].used, top[0].word, top[0].count);
	for (size_t i = 0; i < TOP; i++) /* behind a word's end its bytes are not the result */
		memset(top[i].word + strlen(top[i].word), 0, LONGEST - strlen(top[i].word));
	return mr_report("word_count", mr_checksum(top, TOP * sizeof *top), seconds);
}
