/* CPU time of the calling thread, nanoseconds, by its own clock. It has no hooks. */
#ifndef CPU_TIME_H
#define CPU_TIME_H

#include <time.h>

__attribute__((no_instrument_function)) static long cpu_ns(void)
{
	struct timespec now;
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	return now.tv_sec * 1000000000L + now.tv_nsec;
}

#endif
