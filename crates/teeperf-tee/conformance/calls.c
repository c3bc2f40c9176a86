/* Known numbers of calls on known paths; one of the functions lies further from all others than sites reach. */
#include "lent.h"

#define FAR_AWAY __attribute__((section(".far_away")))

NO_HOOK const char *teeperf_port_name(void)
{
	return "calls";
}

static CALLED FAR_AWAY void far_away(void (*back)(void))
{
	back();
	DOES_SOMETHING;
}

static CALLED void leaf(void)
{
	DOES_SOMETHING;
}

static CALLED void middle(void)
{
	int i;

	for (i = 0; i < 5; i++)
		leaf();
	DOES_SOMETHING;
}

static CALLED void deep(int depth)
{
	if (depth > 1)
		deep(depth - 1);
	DOES_SOMETHING;
}

static CALLED void outer(void)
{
	/* By its address: it is out of a call's reach. */
	void (*volatile away)(void (*)(void)) = far_away;

	middle();
	middle();
	middle();
	away(leaf);
	deep(20);
}

NO_HOOK int main(int count, char **words)
{
	int i;

	(void)count;
	outer(); /* not attached: nobody knows of it */
	attach(lent(words[1], NULL));
	for (i = 0; i < 10000; i++)
		outer();
	teeperf_detach();
	outer();
	return 0;
}
