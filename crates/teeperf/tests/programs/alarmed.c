/* Works while a timer's signal interrupts it all the time, whose handler does next to nothing. */
#include <signal.h>
#include <stdio.h>
#include <sys/time.h>
#include <time.h>

static volatile unsigned long alarms, x = 1;

void alarmed(int signal)
{
	alarms++;
	(void)signal;
}

__attribute__((noinline)) void work(void)
{
	for (int i = 0; i < 100000; i++)
		x = x * 3 + 1;
}

int main(void)
{
	struct sigaction action = {.sa_handler = alarmed, .sa_flags = SA_RESTART};
	struct itimerval often = {{0, 50}, {0, 50}}, never = {{0, 0}, {0, 0}};
	sigaction(SIGALRM, &action, NULL);
	setitimer(ITIMER_REAL, &often, NULL);
	for (struct timespec t = {0, 0}; t.tv_sec < 1; clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t))
		work();
	setitimer(ITIMER_REAL, &never, NULL);
	printf("%lu\n", alarms);
	return 0;
}
