/* A handler leaves by siglongjmp, wherever the hooks were, again and again; with "refused" where signals
 * cannot be kept back. */
#include "refused.h"
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>

static sigjmp_buf place;
static volatile unsigned long handled, worked;

void handler(int number)
{
	(void)number;
	handled++;
	siglongjmp(place, 1);
}

__attribute__((noinline)) void work(void)
{
	worked++;
}

int main(int argc, char **argv)
{
	unsigned long n = argc > 1 ? strtoul(argv[1], 0, 10) : 2000;
	struct sigaction action;
	struct itimerval every = {{0, 50}, {0, 50}};
	memset(&action, 0, sizeof action);
	action.sa_handler = handler;
	action.sa_flags = SA_NODEFER;
	sigaction(SIGALRM, &action, 0);
	if (argc > 2 && !strcmp(argv[2], "refused"))
		refuse_masks();
	if (sigsetjmp(place, 1) == 0)
		setitimer(ITIMER_REAL, &every, 0);
	while (handled < n)
		work();
	memset(&every, 0, sizeof every);
	setitimer(ITIMER_REAL, &every, 0);
	printf("%lu %lu\n", handled, worked);
	return 0;
}
