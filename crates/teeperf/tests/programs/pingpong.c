/* Two threads that wait for one another every few microseconds. It prints what its functions took
 * by each thread's own clock. */
#include "cpu_time.h"
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

static volatile long sink;
static long work_ns, rest_ns;
static int there[2], back[2];

__attribute__((noinline)) void works(int n)
{
	for (int i = 0; i < n; i++)
		sink += i;
}

/* Time of the kernel, for the most part. */
__attribute__((noinline)) void passes_on(int from, int to)
{
	char byte = 0;
	if (from >= 0)
		sink += read(from, &byte, 1);
	sink += write(to, &byte, 1);
}

static void *other(void *unused)
{
	for (int i = 0; i < 20000; i++)
		passes_on(there[0], back[1]);
	return unused;
}

static long timed(int turns)
{
	long begin = cpu_ns();
	works(turns);
	long took = cpu_ns() - begin;
	work_ns += took;
	return took;
}

int main(void)
{
	pthread_t thread;
	if (pipe(there) || pipe(back) || pthread_create(&thread, 0, other, 0))
		return 1;
	/* As many turns as take 12 us on this processor. */
	long least = 1000000;
	for (int i = 0; i < 50; i++) {
		long took = timed(1000);
		least = took < least ? took : least;
	}
	int turns = 1000 * 12000 / least;
	for (int i = 0; i < 20000; i++) {
		timed(turns);
		passes_on(i > 0 ? back[0] : -1, there[1]);
	}
	pthread_join(thread, 0);
	rest_ns = cpu_ns() - work_ns;
	printf("%ld %ld\n", work_ns, rest_ns);
	return 0;
}
