/* A few calls with nothing in them, while the clock stands: what a hook costs is counted from outside. The memory
 * is its own. Built with the runtime, and with the least that a tracer can do in its place (word.c). */
#include <string.h>

#include "lent.h"

#define LENGTH (1 << 20)
#define CALLS 1000

static unsigned char memory[LENGTH] __attribute__((aligned(4096)));

CALLED void empty(void);

CALLED void empty(void)
{
	DOES_SOMETHING;
}

NO_HOOK int main(void)
{
	uint32_t head[8] = { 0, 0, 1, 2, 1 };
	int i;

	memcpy(memory, head, sizeof(head));
	memcpy(memory, "TPARENA\x01", 8);
	attach((struct lent){ memory, sizeof(memory) });
	for (i = 0; i < CALLS; i++)
		empty();
	teeperf_detach();
	return 0;
}
