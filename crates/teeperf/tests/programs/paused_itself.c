/* Pauses the recording 2,000 times for 0.2 ms of work, in which it calls no function with hooks, and
 * works for as long outside. It prints what it took outside, by the thread's own clock. */
#include "cpu_time.h"
#include <stdio.h>
#include <teeperf.h>
#include <time.h>

static volatile long sink;

__attribute__((no_instrument_function, noinline)) static void spend(long ns)
{
	struct timespec nap = {0, 20000};
	nanosleep(&nap, 0);
	for (long end = cpu_ns() + ns; cpu_ns() < end;)
		sink++;
}

__attribute__((noinline)) static void work(void)
{
	spend(200000);
}

int main(void)
{
	long outside = 0, begin;
	for (int i = 0; i < 2000; i++) {
		begin = cpu_ns();
		work();
		teeperf_pause();
		outside += cpu_ns() - begin;
		spend(200000);
		teeperf_resume();
	}
	printf("%ld\n", outside);
	return 0;
}
