/* Nothing but calls: Fibonacci by recursion, in one thread or several at once, in bursts with
 * pauses in which whoever drains can catch up. Prints the nanoseconds of one call and its
 * return within the bursts, by the wall clock and by the processor time of the slowest thread. With -DLIBRARY only the recursion is compiled, for a shared library; with
 * -DDRIVER only the rest, for a program that uses it. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#define OUTSIDE __attribute__((no_instrument_function))

unsigned long fib(unsigned n);

#ifndef DRIVER
__attribute__((noinline)) unsigned long fib(unsigned n)
{
	return n < 2 ? n : fib(n - 1) + fib(n - 2);
}
#endif

#ifndef LIBRARY
static unsigned argument, bursts;
static pthread_barrier_t begin;

OUTSIDE static double now(clockid_t clock)
{
	struct timespec t;
	clock_gettime(clock, &t);
	return t.tv_sec * 1e9 + t.tv_nsec;
}

struct task {
	pthread_t thread;
	unsigned long result;
	double wall, processor;
};

OUTSIDE static void *work(void *shared)
{
	struct task *task = shared;
	struct timespec pause = {0, 5000000};
	fib(10); /* the first events set things up */
	for (unsigned i = 0; i < bursts; i++) {
		if (i)
			nanosleep(&pause, NULL);
		pthread_barrier_wait(&begin);
		double wall = now(CLOCK_MONOTONIC), processor = now(CLOCK_THREAD_CPUTIME_ID);
		task->result = fib(argument);
		task->processor += now(CLOCK_THREAD_CPUTIME_ID) - processor;
		task->wall += now(CLOCK_MONOTONIC) - wall;
	}
	return NULL;
}

/* usage: calls n [threads [bursts]] */
OUTSIDE int main(int argc, char **argv)
{
	enum { MOST = 64 };
	static struct task tasks[MOST];
	int threads = argc > 2 ? atoi(argv[2]) : 1;
	unsigned long a = 0, b = 1;
	double wall = 0, processor = 0;
	if (argc < 2 || threads < 1 || threads > MOST)
		return 2;
	argument = atoi(argv[1]);
	bursts = argc > 3 ? atoi(argv[3]) : 1;
	pthread_barrier_init(&begin, NULL, threads);
	for (int i = 0; i < threads; i++)
		if (pthread_create(&tasks[i].thread, NULL, work, &tasks[i]))
			return 1;
	for (int i = 0; i < threads; i++) {
		pthread_join(tasks[i].thread, NULL);
		wall = tasks[i].wall > wall ? tasks[i].wall : wall;
		processor = tasks[i].processor > processor ? tasks[i].processor : processor;
	}
	for (unsigned i = 0; i <= argument; i++) {
		unsigned long next = a + b;
		a = b;
		b = next;
	}
	double calls = (2.0 * a - 1) * bursts; /* fib(n) makes 2 Fib(n+1) - 1 calls */
	printf("result=%lu calls=%.0f wall_ns=%.3f cpu_ns=%.3f\n", tasks[0].result, calls, wall / calls, processor / calls);
	return tasks[0].result == 0;
}
#endif
