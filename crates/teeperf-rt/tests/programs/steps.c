/* A hooked handler runs after some instructions, at random, of hooked calls and of whatever
 * their hooks do, each of which the processor stops at (the trap flag, Intel SDM 3B, single-step
 * exceptions), in so many threads, each so many rounds. Prints how often handler and worker ran, and the
 * number of instructions. */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define OUTSIDE __attribute__((no_instrument_function))

static volatile unsigned long handled, worked, steps;
static unsigned long rounds, one_in;

__attribute__((noinline)) void inner(void)
{
	handled++;
}

__attribute__((noinline)) void handler(void)
{
	inner();
}

OUTSIDE static void on_step(int number)
{
	static const struct timespec long_time = {0, 20 * 1000 * 1000};
	static unsigned random;
	(void)number;
	steps++;
	random = random * 1664525 + 1013904223;
	if ((random >> 8) % one_in)
		return;
	/* More units of the clock than a tick's word holds. */
	if ((random >> 16) % 1024 == 0)
		nanosleep(&long_time, 0);
	handler();
}

__attribute__((noinline)) void work(void)
{
	worked++;
}

OUTSIDE static void *step(void *number)
{
	for (unsigned long round = 0; round < rounds; round++) {
		/* Where they are few, it is the interrupted hook that begins a thread or changes the chunk. */
		static const unsigned often[] = {512, 8, 64};
		one_in = often[(round + (unsigned long)number) % 3];
		__asm__ volatile("sub $128, %%rsp; pushf; orl $0x100, (%%rsp); popf; add $128, %%rsp"
				 ::: "memory", "cc");
		work();
		work();
		__asm__ volatile("sub $128, %%rsp; pushf; andl $~0x100, (%%rsp); popf; add $128, %%rsp"
				 ::: "memory", "cc");
		/* So that chunks end in other places. */
		for (unsigned long i = round * 37 % 256; i > 0; i--)
			work();
	}
	return 0;
}

OUTSIDE int main(int argc, char **argv)
{
	unsigned long threads = argc > 1 ? strtoul(argv[1], 0, 10) : 1;
	struct sigaction action;
	rounds = argc > 2 ? strtoul(argv[2], 0, 10) : 1;
	memset(&action, 0, sizeof action);
	action.sa_handler = on_step;
	sigaction(SIGTRAP, &action, 0);
	while (threads--) {
		pthread_t thread;
		if (pthread_create(&thread, 0, step, (void *)threads) || pthread_join(thread, 0))
			return 2;
	}
	printf("%lu %lu %lu\n", handled, worked, steps);
	return 0;
}
