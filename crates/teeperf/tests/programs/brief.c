/* Threads that live for less than a millisecond, one after the other. It prints what its
 * functions took by each thread's own clock. */
#include "cpu_time.h"
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

static volatile long sink;
static long first_ns, second_ns, reads_ns;
static int zeros;

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

/* Time of the kernel. */
__attribute__((noinline)) void reads(int n)
{
	static char buffer[1 << 16];
	for (int i = 0; i < n; i++)
		sink += read(zeros, buffer, sizeof buffer);
}

__attribute__((noinline)) void *run(void *unused)
{
	long begin = cpu_ns();
	first(300000);
	long middle = cpu_ns();
	second(300000);
	long end = cpu_ns();
	reads(150);
	first_ns += middle - begin;
	second_ns += end - middle;
	reads_ns += cpu_ns() - end;
	return unused;
}

int main(void)
{
	zeros = open("/dev/zero", O_RDONLY);
	for (int i = 0; i < 1500; i++) {
		pthread_t thread;
		pthread_create(&thread, 0, run, 0);
		pthread_join(thread, 0);
	}
	printf("%ld %ld %ld\n", first_ns, second_ns, reads_ns);
	return 0;
}
