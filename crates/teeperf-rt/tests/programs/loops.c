/* Calls without end, or so many, in so many threads. Says at the end whether it is still recorded. */
#include "teeperf.h"
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

static unsigned long limit;

__attribute__((noinline)) void step(volatile unsigned long *n)
{
	++*n;
}

void *run(void *unused)
{
	volatile unsigned long n = 0;
	while (!limit || n < limit)
		step(&n);
	return unused;
}

int main(int argc, char **argv)
{
	int threads = argc > 2 ? atoi(argv[2]) : 0;
	pthread_t ids[64];
	limit = argc > 1 ? strtoul(argv[1], 0, 10) : 1000;
	for (int i = 0; i < threads; i++)
		pthread_create(&ids[i], 0, run, 0);
	run(0);
	for (int i = 0; i < threads; i++)
		pthread_join(ids[i], 0);
	printf("end %d\n", teeperf_recording());
	return 0;
}
