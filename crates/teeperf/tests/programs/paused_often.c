/* A thread that works in one function without a call, while another pauses the recording again and
 * again, and lets it be for as long. It prints what the first took outside of pauses, by its clock. */
#include <pthread.h>
#include <stdio.h>
#include <teeperf.h>
#include <time.h>

static volatile int is_over;
static volatile long sink;
static clockid_t its_clock;

__attribute__((no_instrument_function)) static long cpu_ns(void)
{
	struct timespec now;
	clock_gettime(its_clock, &now);
	return now.tv_sec * 1000000000L + now.tv_nsec;
}

__attribute__((no_instrument_function)) static void rest(long ns)
{
	struct timespec time = {0, ns};
	nanosleep(&time, 0);
}

__attribute__((noinline)) static void work(void)
{
	while (!is_over)
		for (int i = 0; i < 20000; i++)
			sink += i;
}

static void *thread(void *unused)
{
	work();
	return unused;
}

int main(void)
{
	pthread_t worker;
	long outside = 0, begin;
	if (pthread_create(&worker, 0, thread, 0) || pthread_getcpuclockid(worker, &its_clock))
		return 1;
	rest(20000000);
	for (int i = 0; i < 400; i++) {
		begin = cpu_ns();
		rest(500000);
		outside += cpu_ns() - begin;
		teeperf_pause();
		rest(100000);
		teeperf_resume();
	}
	begin = cpu_ns();
	rest(400000000);
	outside += cpu_ns() - begin;
	is_over = 1;
	pthread_join(worker, 0);
	printf("%ld\n", outside);
	return 0;
}
