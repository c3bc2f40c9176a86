/* A hooked handler runs every 50 us in the midst of hooks, so many times; with "stack" on a stack of its
 * own, with "vfork" in a child that has its parent's memory, with "refused" where signals cannot be kept
 * back. Prints how often handler and worker ran. */
#include "refused.h"
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

static volatile unsigned long handled, worked;

__attribute__((noinline)) void inner(void)
{
	handled++;
}

void handler(int number)
{
	(void)number;
	inner();
}

__attribute__((noinline)) void work(void)
{
	worked++;
}

__attribute__((no_instrument_function)) static void run(unsigned long n)
{
	struct itimerval every = {{0, 50}, {0, 50}}, never = {{0, 0}, {0, 0}};
	setitimer(ITIMER_REAL, &every, 0);
	while (handled < n)
		work();
	setitimer(ITIMER_REAL, &never, 0);
}

__attribute__((no_instrument_function)) static int is_among(char **argv, const char *word)
{
	while (*argv && strcmp(*argv, word))
		argv++;
	return *argv != 0;
}

int main(int argc, char **argv)
{
	unsigned long n = argc > 1 ? strtoul(argv[1], 0, 10) : 1000;
	int use_stack = is_among(argv, "stack");
	int is_child = is_among(argv, "vfork");
	struct sigaction action;
	/* Above every frame that a signal interrupts, where memory of the heap is not. */
	char room[1 << 16];
	memset(&action, 0, sizeof action);
	action.sa_handler = handler;
	action.sa_flags = SA_RESTART;
	if (use_stack) {
		stack_t stack = {.ss_sp = room, .ss_size = sizeof room};
		sigaltstack(&stack, 0);
		action.sa_flags |= SA_ONSTACK;
	}
	sigaction(SIGALRM, &action, 0);
	if (is_among(argv, "refused"))
		refuse_masks();
	if (!is_child)
		run(n);
	else if (!vfork()) {
		run(n);
		_exit(0);
	}
	printf("%lu %lu\n", handled, worked);
	return 0;
}
