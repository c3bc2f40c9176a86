/* A handler that its own signal may interrupt comes every millisecond for three seconds. Prints how many
 * of them were under way at most. */
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/time.h>
#include <time.h>

#define OUTSIDE __attribute__((no_instrument_function))

static volatile int depth, deepest;
static volatile unsigned long sum;

__attribute__((noinline)) void work(void)
{
	sum++;
}

OUTSIDE static void handler(int number)
{
	(void)number;
	if (++depth > deepest)
		deepest = depth;
	work();
	depth--;
}

OUTSIDE int main(void)
{
	struct itimerval every = {{0, 1000}, {0, 1000}}, never = {{0, 0}, {0, 0}};
	struct sigaction action;
	time_t end = time(0) + 3;
	memset(&action, 0, sizeof action);
	action.sa_handler = handler;
	action.sa_flags = SA_NODEFER | SA_RESTART;
	sigaction(SIGALRM, &action, 0);
	setitimer(ITIMER_REAL, &every, 0);
	while (time(0) < end)
		for (int i = 0; i < 1000; i++)
			work();
	setitimer(ITIMER_REAL, &never, 0);
	printf("%d\n", deepest);
	return 0;
}
