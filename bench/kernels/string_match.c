/* string_match: encrypts every word of a file of keys and looks whether it is one of those that
 * are sought, which are known encrypted only. */
#include "mapreduce.h"

enum { TEXT_BYTES = 100 << 20, SOUGHT = 4, ROUNDS = 5 };

/* One for each worker, on cache lines of its own. */
struct tally {
	uint64_t found[SOUGHT];
	uint64_t words;
} __attribute__((aligned(128)));

struct search {
	const char *text; /* words, each ended by a newline */
	uint64_t sought[SOUGHT];
	struct tally tally[MR_WORKERS];
};

static const char *end_of_word(const char *at, const char *end)
{
	while (at < end && *at != '\n')
		at++;
	return at;
}

/* XTEA with few rounds (Needham, Wheeler, 1997), each block chained to the one before. */
static uint64_t encrypt(const char *at, const char *end)
{
	static const uint32_t key[4] = {0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344};
	uint32_t a = 0, b = 0;
	for (; at < end; at += 8) {
		uint64_t block;
		uint32_t sum = 0;
		memcpy(&block, at, 8); /* there are bytes behind the text's end */
		if (end - at < 8)
			block &= (1ull << 8 * (end - at)) - 1;
		a ^= block;
		b ^= block >> 32;
		for (int round = 0; round < 5; round++) {
			a += ((b << 4 ^ b >> 5) + b) ^ (sum + key[sum & 3]);
			sum += 0x9e3779b9;
			b += ((a << 4 ^ a >> 5) + a) ^ (sum + key[sum >> 11 & 3]);
		}
	}
	return (uint64_t)b << 32 | a;
}

/* A word belongs to the worker in whose part it begins. */
static void map(void *shared, int worker, size_t begin, size_t end)
{
	struct search *s = shared;
	struct tally *tally = &s->tally[worker];
	const char *at = s->text + begin, *stop = s->text + end, *limit = s->text + TEXT_BYTES;
	while (begin && at < limit && at[-1] != '\n')
		at++;
	while (at < stop) {
		const char *end_of = end_of_word(at, limit);
		uint64_t encrypted = encrypt(at, end_of);
		for (int i = 0; i < SOUGHT; i++)
			tally->found[i] += s->sought[i] == encrypted;
		tally->words++;
		at = end_of + 1;
	}
}

MR_OUTSIDE static char *make_text(void)
{
	char *text = mr_allocate(TEXT_BYTES + 8);
	uint64_t seed = 7;
	for (size_t at = 0; at < TEXT_BYTES;) {
		uint64_t r = mr_random(&seed);
		size_t length = 12 + (r & 15);
		for (r >>= 4; length-- && at < TEXT_BYTES - 1; r = r >> 5 | r << 59)
			text[at++] = 'a' + (r & 31) % 26;
		text[at++] = '\n';
	}
	return text;
}

/* Sought are words that are there: from the middle of each quarter of the text. */
static void choose_sought(struct search *s)
{
	for (size_t i = 0; i < SOUGHT; i++) {
		const char *at = s->text + (TEXT_BYTES / SOUGHT) * i + TEXT_BYTES / SOUGHT / 2;
		at = end_of_word(at, s->text + TEXT_BYTES) + 1;
		s->sought[i] = encrypt(at, end_of_word(at, s->text + TEXT_BYTES));
	}
}

int main(void)
{
	static struct search s;
	uint64_t result[SOUGHT + 1] = {0};
	s.text = make_text();
	double start = mr_seconds();
	choose_sought(&s);
	for (int round = 0; round < ROUNDS; round++)
		mr_run(TEXT_BYTES, map, &s);
	for (int w = 0; w < MR_WORKERS; w++) {
		for (int i = 0; i < SOUGHT; i++)
			result[i] += s.tally[w].found[i];
		result[SOUGHT] += s.tally[w].words;
	}
	printf("words=%llu\n", (unsigned long long)result[SOUGHT]);
	return mr_report("string_match", mr_checksum(result, sizeof result), mr_seconds() - start);
}
