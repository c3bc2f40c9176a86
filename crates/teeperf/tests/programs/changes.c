/* A thread that waits all the time, then works without a wait: before a pause of the recording, in
 * it, and behind it. Arguments: milliseconds of CPU time in the pause, in waits, and of work on
 * each side of the pause. It prints what work() took before, in, and behind the pause, by the thread's
 * own clock. */
#include "cpu_time.h"
#include <stdlib.h>
#include <stdio.h>
#include <teeperf.h>
#include <time.h>

static volatile long sink;

__attribute__((noinline)) static void naps(long ms)
{
	struct timespec short_time = {0, 1000};
	for (long end = cpu_ns() + ms * 1000000; cpu_ns() < end;)
		nanosleep(&short_time, 0);
}

__attribute__((noinline)) static long work(long ms)
{
	long begin = cpu_ns();
	while (cpu_ns() < begin + ms * 1000000)
		for (int i = 0; i < 20000; i++)
			sink += i;
	return cpu_ns() - begin;
}

int main(int argc, char **argv)
{
	long paused_ms = argc > 1 ? atol(argv[1]) : 0, paused = 0;
	long naps_ms = argc > 2 ? atol(argv[2]) : 0;
	if (naps_ms > 0)
		naps(naps_ms);
	long work_ms = argc > 3 ? atol(argv[3]) : 200;
	long before = work(work_ms);
	if (paused_ms > 0) {
		teeperf_pause();
		paused = work(paused_ms);
		teeperf_resume();
	}
	printf("%ld %ld %ld\n", before, paused, work(work_ms));
	return 0;
}
