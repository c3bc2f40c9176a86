/* Handlers that call hooked functions, whatever they interrupt. Says how many calls and returns there were. */
#include <signal.h>
#include <sys/time.h>

#include "lent.h"

static volatile unsigned long long handled;

NO_HOOK const char *teeperf_port_name(void)
{
	return "signals";
}

static CALLED void inner(void)
{
	DOES_SOMETHING;
}

static CALLED void handler(int signal)
{
	(void)signal;
	inner();
	inner();
	handled += 6;
}

static CALLED void called(void)
{
	DOES_SOMETHING;
}

static CALLED unsigned long long work(long ms)
{
	unsigned long long events = 0;
	struct timeval begun, now;
	int i;

	gettimeofday(&begun, NULL);
	do {
		for (i = 0; i < 500; i++)
			called();
		events += 1000;
		gettimeofday(&now, NULL);
	} while ((now.tv_sec - begun.tv_sec) * 1000 + (now.tv_usec - begun.tv_usec) / 1000 < ms);
	return events;
}

NO_HOOK int main(int count, char **words)
{
	struct itimerval often = { { 0, 50 }, { 0, 50 } };
	struct itimerval never = { { 0, 0 }, { 0, 0 } };
	struct sigaction action = { 0 };
	unsigned long long events;

	(void)count;
	attach(lent(words[1], NULL));
	action.sa_handler = handler;
	sigaction(SIGALRM, &action, NULL);
	setitimer(ITIMER_REAL, &often, NULL);
	events = work(1000);
	setitimer(ITIMER_REAL, &never, NULL);
	usleep(10000);
	teeperf_detach();
	printf("events %llu, in handlers %llu\n", events + handled + 2, handled);
	return 0;
}
