/* Threads that live for less than a millisecond, one after the other. It prints what its two
 * functions took by each thread's own clock. */
#include <pthread.h>
#include <stdio.h>
#include <time.h>

static volatile long sink;
static long first_ns, second_ns;

__attribute__((no_instrument_function)) static long cpu_ns(void)
{
	struct timespec now;
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	return now.tv_sec * 1000000000L + now.tv_nsec;
}

__attribute__((noinline)) void first(int n)
{
	for (int i = 0; i < n; i++)
		sink += i;
}

__attribute__((noinline)) void second(int n)
{
	for (int i = 0; i < n; i++)
		sink -= i;
}

__attribute__((noinline)) void *run(void *unused)
{
	long begin = cpu_ns();
	first(300000);
	long middle = cpu_ns();
	second(300000);
	first_ns += middle - begin;
	second_ns += cpu_ns() - middle;
	return unused;
}

int main(void)
{
	for (int i = 0; i < 1500; i++) {
		pthread_t thread;
		pthread_create(&thread, 0, run, 0);
		pthread_join(thread, 0);
	}
	printf("%ld %ld\n", first_ns, second_ns);
	return 0;
}
