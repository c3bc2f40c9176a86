/* Beats at a given period: 21 % of it in one function, 21 % in a second, 58 % in a third, and
 * so on, each beat beginning exactly one period after the last. A clock that is read strictly
 * periodically would see the same function at every look. Prints what each function's share
 * of the time was, in percent, by the clock that the phases themselves wait for.
 *
 * usage: beat period_us seconds */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#define OUTSIDE __attribute__((no_instrument_function))

OUTSIDE static uint64_t now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000ull + t.tv_nsec;
}

#define PHASE(name)                                       \
	__attribute__((noinline)) uint64_t name(uint64_t end) \
	{                                                     \
		uint64_t t;                                       \
		while ((t = now()) < end)                         \
			;                                             \
		return t;                                         \
	}
PHASE(first)
PHASE(second)
PHASE(third)

OUTSIDE int main(int argc, char **argv)
{
	if (argc < 3)
		return 2;
	uint64_t period = atof(argv[1]) * 1000, begin = now(), t = begin;
	uint64_t beats = atof(argv[2]) * 1e9 / period;
	uint64_t spent[3] = {0};
	for (uint64_t beat = 0; beat < beats; beat++) {
		uint64_t start = begin + beat * period, at = t;
		t = first(start + period * 21 / 100);
		spent[0] += t - at;
		at = t;
		t = second(start + period * 42 / 100);
		spent[1] += t - at;
		at = t;
		t = third(start + period);
		spent[2] += t - at;
	}
	double all = (double)(spent[0] + spent[1] + spent[2]) / 100;
	printf("first=%.3f second=%.3f third=%.3f\n", spent[0] / all, spent[1] / all, spent[2] / all);
	return 0;
}
