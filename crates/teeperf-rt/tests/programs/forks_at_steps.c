/* A handler forks after some instructions, at random, of a hooked call and of its hooks. The
 * processor stops at each of these (see steps.c). The parent goes on at once, and each child a while later, when
 * the clock has moved. Prints how many children there were, and how often the parent's worker ran. */
#define _GNU_SOURCE
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

#define OUTSIDE __attribute__((no_instrument_function))

static volatile unsigned long children, worked, is_child, steps_left;

__attribute__((noinline)) void work(void)
{
	worked++;
}

OUTSIDE static void on_step(int number, siginfo_t *information, void *context)
{
	static unsigned random = 1;
	(void)number;
	(void)information;
	/* No other signal would come where they are kept back. */
	if (steps_left > 1 || sigismember(&((ucontext_t *)context)->uc_sigmask, SIGALRM)) {
		steps_left -= steps_left > 1;
		return;
	}
	random = random * 1664525 + 1013904223;
	steps_left = 1 + (random >> 8) % 256;
	if (!fork()) {
		is_child = 1;
		((ucontext_t *)context)->uc_mcontext.gregs[REG_EFL] &= ~0x100;
		usleep(200);
		return;
	}
	children++;
}

OUTSIDE int main(int argc, char **argv)
{
	unsigned long most = argc > 1 ? strtoul(argv[1], 0, 10) : 1;
	struct sigaction action;
	memset(&action, 0, sizeof action);
	action.sa_sigaction = on_step;
	action.sa_flags = SA_SIGINFO;
	sigaction(SIGTRAP, &action, 0);
	/* The first call begins the thread, and attaches the process. */
	work();
	while (children < most && !is_child) {
		/* So that the hooks' first instructions are met as often as those behind them. */
		steps_left = 1 + children % 64;
		__asm__ volatile("sub $128, %%rsp; pushf; orl $0x100, (%%rsp); popf; add $128, %%rsp"
				 ::: "memory", "cc");
		work();
		__asm__ volatile("sub $128, %%rsp; pushf; andl $~0x100, (%%rsp); popf; add $128, %%rsp"
				 ::: "memory", "cc");
		for (int i = 0; i < 100; i++)
			work();
	}
	if (is_child)
		_exit(0);
	while (wait(0) > 0) {
	}
	printf("%lu %lu\n", children, worked);
	return 0;
}
