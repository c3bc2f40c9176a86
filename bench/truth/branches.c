/* Branches that the processor foresees and such as it does not.
 *
 * calls: a branch or some in each of many small calls, timed in batches by the thread's clock;
 * indirect: calls through pointers that change by chance, where perf tells the truth. */
#include "truth.h"

ALONE uint64_t foreseen(uint64_t x)
{
	UNITS(x, 3)
	if (x == 42)
		sink = x;
	return x;
}

ALONE uint64_t by_chance(uint64_t x)
{
	UNITS(x, 3)
	if (x >> 63) {
		__asm__ volatile("" : "+r"(x));
		x ^= 0x5bd1e995;
	}
	UNITS(x, 1)
	return x;
}

ALONE uint64_t five_by_chance(uint64_t x)
{
	UNITS(x, 3)
	for (unsigned bit = 59; bit < 64; bit++) {
		if (x >> bit & 1) {
			__asm__ volatile("" : "+r"(x));
			x += bit;
		}
	}
	UNITS(x, 1)
	return x;
}

OUTSIDE static void calls(unsigned rounds)
{
	struct part parts[] = {{"foreseen", foreseen, 0},
	                       {"by_chance", by_chance, 0},
	                       {"five_by_chance", five_by_chance, 0}};
	uint64_t x = 1;
	for (unsigned round = 0; round < rounds; round++) {
		x = timed(&parts[0], 300000, x);
		x = timed(&parts[1], 100000, x);
		x = timed(&parts[2], 30000, x);
	}
	sink = x;
	tell(parts, 3);
}

WORK(red, 4)
WORK(green, 12)
WORK(blue, 24)
WORK(grey, 60)

ALONE uint64_t choose(uint64_t x, unsigned times)
{
	work_fn *const colours[] = {red, green, blue, grey};
	while (times--)
		x = colours[x >> 62](x);
	return x;
}

OUTSIDE static void indirect(unsigned rounds)
{
	while (rounds--)
		sink = choose(sink, 20000);
}

SCENARIOS({"calls", calls}, {"indirect", indirect})
