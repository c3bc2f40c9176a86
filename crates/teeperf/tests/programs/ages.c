/* Threads that all live for a little longer than a sample stands for, one after the other, and do
 * first one thing and then another. It prints what these took by each thread's own clock. */
#include "cpu_time.h"
#include <pthread.h>
#include <stdio.h>

static volatile long sink;
static long first_ns, second_ns;

/* Most of the work lies between looks at the clock: the kernel's part has few samples. */
#define BETWEEN_LOOKS 5000

__attribute__((noinline)) void first(long ns)
{
	for (long end = cpu_ns() + ns; cpu_ns() < end;)
		for (int i = 0; i < BETWEEN_LOOKS; i++)
			sink++;
}

__attribute__((noinline)) void second(long ns)
{
	for (long end = cpu_ns() + ns; cpu_ns() < end;)
		for (int i = 0; i < BETWEEN_LOOKS; i++)
			sink--;
}

static void *run(void *ns)
{
	long begin = cpu_ns();
	first(*(long *)ns);
	long middle = cpu_ns();
	second(*(long *)ns);
	first_ns += middle - begin;
	second_ns += cpu_ns() - middle;
	return 0;
}

int main(void)
{
	for (int i = 0; i < 800; i++) {
		long ns = i % 2 ? 600000 : 900000;
		pthread_t thread;
		pthread_create(&thread, 0, run, &ns);
		pthread_join(thread, 0);
	}
	printf("%ld %ld\n", first_ns, second_ns);
	return 0;
}
