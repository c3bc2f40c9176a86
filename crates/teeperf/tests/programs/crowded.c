/* Many paths, walked again and again: more than a small tree has room for. Meanwhile a hooked handler comes by
 * timer, or after each single instruction of some rounds (the trap flag, Intel SDM 3B, single-step exceptions).
 * usage: crowded ROUNDS DEPTH MICROSECONDS, and 0 of these: stepped. Tells calls. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/time.h>

#define OUTSIDE __attribute__((no_instrument_function))
#define NOINLINE __attribute__((noinline, noclone))

static volatile unsigned long lefts, rights, handled, rounds;

NOINLINE void inner(void)
{
	handled++;
}

NOINLINE void handler(int number)
{
	(void)number;
	inner();
}

NOINLINE void right(int depth);

NOINLINE void left(int depth)
{
	lefts++;
	if (depth > 0) {
		left(depth - 1);
		right(depth - 1);
	}
}

NOINLINE void right(int depth)
{
	rights++;
	if (depth > 0) {
		left(depth - 1);
		right(depth - 1);
	}
}

NOINLINE void goes_round(int depth)
{
	rounds++;
	left(depth);
}

/* Called when all is full. */
#define LATE(name) NOINLINE void name(void) { __asm__ volatile("" ::: "memory"); }
LATE(late_a) LATE(late_b) LATE(late_c) LATE(late_d) LATE(late_e) LATE(late_f) LATE(late_g) LATE(late_h)

int main(int argc, char **argv)
{
	unsigned long count = argc > 1 ? strtoul(argv[1], 0, 10) : 1;
	int depth = argc > 2 ? atoi(argv[2]) : 1, us = argc > 3 ? atoi(argv[3]) : 0;
	struct itimerval timer = {{0, us}, {0, us}};
	signal(SIGALRM, handler);
	signal(SIGTRAP, handler);
	/* What is called first has room. */
	goes_round(0);
	raise(SIGALRM);
	goes_round(depth);
	setitimer(ITIMER_REAL, &timer, 0);
	for (unsigned long round = 0; round < count; round++) {
		if (us == 0)
			__asm__ volatile("sub $128, %%rsp; pushf; orl $0x100, (%%rsp); popf; add $128, %%rsp" ::: "memory", "cc");
		goes_round(depth);
		if (us == 0)
			__asm__ volatile("sub $128, %%rsp; pushf; andl $~0x100, (%%rsp); popf; add $128, %%rsp" ::: "memory", "cc");
	}
	signal(SIGALRM, SIG_IGN);
	late_a(), late_b(), late_c(), late_d(), late_e(), late_f(), late_g(), late_h();
	printf("calls main 1\ncalls handler %lu\ncalls inner %lu\n", handled, handled);
	printf("calls goes_round %lu\ncalls left %lu\ncalls right %lu\n", rounds, lefts, rights);
	for (char name = 'a'; name <= 'h'; name++)
		printf("calls late_%c 1\n", name);
	return 0;
}
