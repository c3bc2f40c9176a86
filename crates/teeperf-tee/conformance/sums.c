/* Calls that are summed, in one recording after the other and between them. The counter counts ten million a
 * second. */
#include <time.h>

#include "lent.h"

#define COUNTS_OF_A_MS 10000

static uint64_t tree[512];

NO_HOOK const char *teeperf_port_name(void)
{
	return "sums";
}

NO_HOOK void *teeperf_port_tree(size_t *length)
{
	*length = sizeof(tree);
	return tree;
}

NO_HOOK int teeperf_port_sums(void)
{
	return 1;
}

NO_HOOK uint64_t teeperf_port_counter(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 10000000ULL + now.tv_nsec / 100;
}

static NO_HOOK void spend(int ms)
{
	uint64_t until = teeperf_port_counter() + ms * COUNTS_OF_A_MS;

	while (teeperf_port_counter() < until)
		;
}

static CALLED void within(void)
{
	spend(10);
}

static CALLED void apart(void)
{
	spend(50);
}

NO_HOOK int main(int count, char **words)
{
	int round, i;

	(void)count;
	say("begun");
	for (round = 0; round < 5; round++) {
		if (round > 0)
			apart();
		attach(lent(words[1], NULL));
		for (i = 0; i < 10; i++)
			within();
		teeperf_detach();
		say("detached");
	}
	return 0;
}
