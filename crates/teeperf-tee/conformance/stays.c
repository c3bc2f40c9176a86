/* Calls that are summed by code that stays attached until it ends without a word, in memory that has room for some of
 * its paths at a time. */
#include <fcntl.h>
#include <signal.h>

#include "lent.h"

#define DEPTH 500

static uint64_t tree[8192];

NO_HOOK const char *teeperf_port_name(void)
{
	return "stays";
}

NO_HOOK void *teeperf_port_tree(size_t *length)
{
	*length = sizeof(tree);
	return tree;
}

NO_HOOK int teeperf_port_sums(void)
{
	return 1;
}

NO_HOOK uint32_t teeperf_port_pause(void)
{
	usleep(100);
	return 100;
}

static CALLED void deep(int depth)
{
	if (depth > 1)
		deep(depth - 1);
	DOES_SOMETHING;
}

static CALLED void after(void)
{
	DOES_SOMETHING;
}

NO_HOOK int main(int count, char **words)
{
	char answer;

	(void)count;
	attach(lent(words[1], NULL));
	deep(DEPTH);
	say("called");
	fcntl(0, F_SETFL, O_NONBLOCK);
	for (;;) {
		after();
		usleep(200);
		if (read(0, &answer, 1) == 1)
			kill(getpid(), SIGKILL);
	}
}
