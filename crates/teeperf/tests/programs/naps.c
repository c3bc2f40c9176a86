/* Short sleeps between loops that take longer, or less long, than the clock's tick. It prints for
 * how long each function was off its processor, by the thread's own clocks. */
#include <stdio.h>
#include <time.h>

static volatile long sink;
static long off_ns[3];

__attribute__((no_instrument_function)) static long now_ns(clockid_t clock)
{
	struct timespec now;
	clock_gettime(clock, &now);
	return now.tv_sec * 1000000000L + now.tv_nsec;
}

__attribute__((no_instrument_function)) static long off_until_now_ns(void)
{
	long cpu = now_ns(CLOCK_THREAD_CPUTIME_ID);
	return now_ns(CLOCK_MONOTONIC) - cpu;
}

__attribute__((noinline)) void before(int n)
{
	for (int i = 0; i < n; i++)
		sink += i;
}

__attribute__((noinline)) void naps(long ns)
{
	struct timespec time = {0, ns};
	nanosleep(&time, 0);
	sink++;
}

__attribute__((noinline)) void after(int n)
{
	for (int i = 0; i < n; i++)
		sink -= i;
}

int main(void)
{
	for (int i = 0; i < 1500; i++) {
		int n = i % 3 ? 20000 : 400000;
		long times[4] = {off_until_now_ns()};
		before(n);
		times[1] = off_until_now_ns();
		naps(i % 2 ? 100000 : 300000);
		times[2] = off_until_now_ns();
		after(n);
		times[3] = off_until_now_ns();
		for (int at = 0; at < 3; at++)
			off_ns[at] += times[at + 1] - times[at];
	}
	printf("%ld %ld %ld\n", off_ns[0], off_ns[1], off_ns[2]);
	return 0;
}
