/* More calls than the memory has room for, while the host does not drain it. */
#include "lent.h"

NO_HOOK const char *teeperf_port_name(void)
{
	return "full";
}

NO_HOOK uint32_t teeperf_port_pause(void)
{
	usleep(100);
	return 100;
}

static CALLED void called(void)
{
	DOES_SOMETHING;
}

static CALLED void last(void)
{
	DOES_SOMETHING;
}

static CALLED void around(int times)
{
	for (; times; times--)
		called();
	DOES_SOMETHING;
}

NO_HOOK int main(int count, char **words)
{
	(void)count;
	attach(lent(words[1], NULL));
	say("begun");
	around(100000);
	say("done");
	last();
	printf("recording %d\n", teeperf_recording());
	teeperf_detach();
	return 0;
}
