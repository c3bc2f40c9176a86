/* The first hook of a forked child, which attaches it, is left by a jump out of a signal handler: after
 * another number of instructions in each of so many children, between which so many lie. Each child
 * makes a hundred calls afterwards. Prints how many children there were. */
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define OUTSIDE __attribute__((no_instrument_function))

static sigjmp_buf out;
static volatile unsigned long steps, last, sum;

__attribute__((noinline)) void first(void)
{
	sum++;
}

__attribute__((noinline)) void after(void)
{
	sum++;
}

OUTSIDE static void on_step(int number)
{
	(void)number;
	if (++steps == last)
		siglongjmp(out, 1);
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

OUTSIDE int main(int argc, char **argv)
{
	unsigned long children = argc > 1 ? strtoul(argv[1], 0, 10) : 1;
	unsigned long between = argc > 2 ? strtoul(argv[2], 0, 10) : 1;
	struct sigaction action;
	memset(&action, 0, sizeof action);
	action.sa_handler = on_step;
	action.sa_flags = SA_NODEFER;
	sigaction(SIGTRAP, &action, 0);
	first();
	for (unsigned long i = 1; i <= children; i++) {
		int status;
		last = i * between;
		pid_t id = begin_child();
		if (!id) {
			for (int call = 0; call < 100; call++)
				after();
			_exit(0);
		}
		if (waitpid(id, &status, 0) != id || status)
			return 2;
	}
	printf("%lu\n", children);
	return 0;
}
