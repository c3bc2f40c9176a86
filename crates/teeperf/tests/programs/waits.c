/* Calls that wait 20 times each, beside calls that work. It prints the CPU time of both kinds, by
 * the thread's own clock. */
#include "cpu_time.h"
#include <stdio.h>
#include <time.h>

static volatile long sink;

__attribute__((noinline)) void naps(void)
{
	struct timespec time = {0, 50000};
	for (int i = 0; i < 20; i++)
		nanosleep(&time, 0);
	sink++;
}

__attribute__((noinline)) void works(void)
{
	for (int i = 0; i < 100000; i++)
		sink += i;
}

int main(void)
{
	long napped = 0, worked = 0;
	for (int i = 0; i < 500; i++) {
		long begin = cpu_ns();
		naps();
		long between = cpu_ns();
		works();
		napped += between - begin;
		worked += cpu_ns() - between;
	}
	printf("%ld %ld\n", napped, worked);
	return 0;
}
