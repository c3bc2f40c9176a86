/* A handler forks now and then, whatever hook it interrupts, and calls in the child. The children make many
 * calls, and outlive their parent's calls by a while. Prints how many there were. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#define OUTSIDE __attribute__((no_instrument_function))

static volatile unsigned long sum, children, is_child, calls_in_handlers;

__attribute__((noinline)) void in_handler(void)
{
	sum++;
}

__attribute__((noinline)) void work(void)
{
	sum++;
}

OUTSIDE static void handler(int number)
{
	(void)number;
	if (is_child || children == 40)
		return;
	pid_t child = fork();
	if (child) {
		children += child > 0;
		return;
	}
	is_child = 1;
	if (calls_in_handlers)
		in_handler();
}

OUTSIDE int main(int argc, char **argv)
{
	struct itimerval every = {{0, 3000}, {0, 3000}}, never = {{0, 0}, {0, 0}};
	struct sigaction action;
	(void)argv;
	calls_in_handlers = argc > 1;
	memset(&action, 0, sizeof action);
	action.sa_handler = handler;
	action.sa_flags = SA_RESTART;
	sigaction(SIGALRM, &action, 0);
	setitimer(ITIMER_REAL, &every, 0);
	while (!is_child && children < 40)
		work();
	if (is_child) {
		for (int i = 0; i < 20000; i++)
			work();
		usleep(200000);
		for (int i = 0; i < 20000; i++)
			work();
		_exit(0);
	}
	setitimer(ITIMER_REAL, &never, 0);
	while (wait(0) > 0) {
	}
	printf("%lu\n", children);
	return 0;
}
