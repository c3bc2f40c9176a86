/* Has a chain of calls, and does at its end what the argument says: it works, tells its callers,
   or tells them wherever a timer interrupts its work. */
#include <execinfo.h>
#include <signal.h>
#include <string.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#define NOINLINE __attribute__((noinline))

static volatile unsigned long sink;
static const char *asked;

NOINLINE void tells(void)
{
	void *places[64];
	backtrace_symbols_fd(places, backtrace(places, 64), 1);
	write(1, "\n", 1);
	sink++;
}

static void handles(int signal)
{
	tells();
	sink += signal;
}

NOINLINE void leaf(void)
{
	for (int i = 0; i < 5; i++)
		sink += i;
}

NOINLINE void works(void)
{
	struct timespec began, now;
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &began);
	do {
		for (int i = 0; i < 10000; i++)
			leaf();
		clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
	} while ((now.tv_sec - began.tv_sec) * 1000000000L + now.tv_nsec - began.tv_nsec < 300000000L);
}

NOINLINE void inner(void)
{
	struct itimerval often = {{0, 1000}, {0, 1000}}, never = {0};
	if (strcmp(asked, "tell") == 0)
		tells();
	if (strcmp(asked, "interrupt") == 0)
		setitimer(ITIMER_PROF, &often, 0);
	if (strcmp(asked, "tell") != 0)
		works();
	setitimer(ITIMER_PROF, &never, 0);
	sink++;
}

NOINLINE void middle(void)
{
	volatile int room[30];
	room[29] = 1;
	inner();
	sink += room[29];
}

NOINLINE void outer(void)
{
	middle();
	sink++;
}

int main(int argc, char **argv)
{
	void *place;
	asked = argc > 1 ? argv[1] : "work";
	/* The first call loads a library. */
	backtrace(&place, 1);
	signal(SIGPROF, handles);
	outer();
	return 0;
}
