/* Waits between its parts for whoever pauses and resumes the recording. */
#include "lent.h"

NO_HOOK const char *teeperf_port_name(void)
{
	return "pauses";
}

static CALLED void before(void)
{
	DOES_SOMETHING;
}

static CALLED void meanwhile(void)
{
	DOES_SOMETHING;
}

static CALLED void after(void)
{
	DOES_SOMETHING;
}

static CALLED void open_at_the_end(int times)
{
	for (; times; times--)
		meanwhile();
	say("in the middle");
	after();
}

static CALLED void open_at_the_beginning(void)
{
	before();
	say("begun");
	meanwhile();
	DOES_SOMETHING;
}

NO_HOOK int main(int count, char **words)
{
	(void)count;
	attach(lent(words[1], NULL));
	open_at_the_beginning();
	open_at_the_end(1000);
	after();
	teeperf_detach();
	return 0;
}
