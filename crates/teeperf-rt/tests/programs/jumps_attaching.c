/* The first hook of a forked child, which attaches it and begins its thread, is left by a jump out of a
 * signal handler: after another number of instructions in each child, between which so many lie. Each
 * child makes a hundred calls afterwards. Prints how many children there were, and how many
 * instructions the hook has. */
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define OUTSIDE __attribute__((no_instrument_function))

static sigjmp_buf out;
static volatile unsigned long *steps, last, sum;

__attribute__((noinline)) void first(void)
{
	sum++;
}

__attribute__((noinline)) void after(void)
{
	sum++;
}

OUTSIDE static void on_signal(int number)
{
	(void)number;
	siglongjmp(out, 1);
}

/* The other signal comes when this handler ends, or when the thread no longer keeps it back. */
OUTSIDE static void on_step(int number)
{
	(void)number;
	if (++*steps == last)
		raise(SIGUSR1);
}

OUTSIDE static void step_first(void)
{
	__asm__ volatile("sub $128, %%rsp; pushf; orl $0x100, (%%rsp); popf; add $128, %%rsp"
			 ::: "memory", "cc");
	first();
	__asm__ volatile("sub $128, %%rsp; pushf; andl $~0x100, (%%rsp); popf; add $128, %%rsp"
			 ::: "memory", "cc");
}

/* The mark that a jump goes to is set before the fork: it is an event as well. */
OUTSIDE static pid_t begin_child(void)
{
	if (sigsetjmp(out, 1))
		return 0;
	pid_t id = fork();
	if (!id)
		step_first();
	return id;
}

OUTSIDE static void run_child(void)
{
	int status;
	*steps = 0;
	pid_t id = begin_child();
	if (!id) {
		for (int call = 0; call < 100; call++)
			after();
		_exit(0);
	}
	if (waitpid(id, &status, 0) != id || status)
		exit(2);
}

OUTSIDE int main(int argc, char **argv)
{
	unsigned long between = argc > 1 ? strtoul(argv[1], 0, 10) : 1, all;
	unsigned long children = 1;
	struct sigaction action;
	steps = mmap(0, sizeof *steps, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	memset(&action, 0, sizeof action);
	action.sa_handler = on_signal;
	sigaction(SIGUSR1, &action, 0);
	action.sa_handler = on_step;
	sigaddset(&action.sa_mask, SIGUSR1);
	sigaction(SIGTRAP, &action, 0);
	first();
	run_child();
	all = *steps;
	for (last = 1; last < all; last += between, children++)
		run_child();
	printf("%lu %lu\n", children, all);
	return 0;
}
