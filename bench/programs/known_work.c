/* Functions whose calls take about 20, 100 ns, 1 and 10 us, mixed so that each does a like
 * amount of work in all. The work is a chain of multiplications through all calls, so that
 * the processor cannot do one call's work beside the next one's.
 *
 * usage: known_work truth|mix [seconds]
 * "mix" prints the rounds made. "truth" times each function alone and prints its nanoseconds. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#define OUTSIDE __attribute__((no_instrument_function))

static volatile uint64_t sink;

#define WORK(name, units)                                             \
	__attribute__((noinline)) uint64_t name(uint64_t x)               \
	{                                                                 \
		for (unsigned i = 0; i < units; i++) {                        \
			x = x * 0x9e3779b97f4a7c15 + 1;                           \
			__asm__ volatile("" : "+r"(x));                           \
		}                                                             \
		return x;                                                     \
	}
WORK(work_20ns, 16)
WORK(work_100ns, 80)
WORK(work_1us, 800)
WORK(work_10us, 8000)

OUTSIDE static double now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec + t.tv_nsec * 1e-9;
}

OUTSIDE static uint64_t repeat(uint64_t (*work)(uint64_t), unsigned times, uint64_t x)
{
	while (times--)
		x = work(x);
	return x;
}

OUTSIDE static void truth(const char *name, uint64_t (*work)(uint64_t), unsigned times)
{
	double least = 1e9;
	for (int round = 0; round < 15; round++) { /* the least disturbed round counts */
		double start = now();
		sink = repeat(work, times, sink);
		double seconds = now() - start;
		least = seconds < least ? seconds : least;
	}
	printf("%s=%.4f\n", name, least * 1e9 / times);
}

OUTSIDE int main(int argc, char **argv)
{
	double seconds = argc > 2 ? atof(argv[2]) : 1;
	unsigned long rounds = 0;
	if (argc < 2)
		return 2;
	if (!strcmp(argv[1], "truth")) {
		truth("work_20ns", work_20ns, 500000);
		truth("work_100ns", work_100ns, 100000);
		truth("work_1us", work_1us, 10000);
		truth("work_10us", work_10us, 1000);
		return 0;
	}
	for (double start = now(); now() - start < seconds; rounds++) {
		sink = repeat(work_20ns, 5000, sink);
		sink = repeat(work_100ns, 1000, sink);
		sink = repeat(work_1us, 100, sink);
		sink = repeat(work_10us, 10, sink);
	}
	printf("rounds=%lu\n", rounds);
	return 0;
}
