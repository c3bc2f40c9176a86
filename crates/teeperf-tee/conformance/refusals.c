/* Every reason to refuse memory, by its number. */
#include <string.h>

#include "lent.h"

static unsigned char own[2 * TEEPERF_LEAST] __attribute__((aligned(4096)));

NO_HOOK int teeperf_port_is_outside(const void *start, size_t length)
{
	const unsigned char *first = start;

	return first + length <= own || first >= own + sizeof(own);
}

NO_HOOK int main(int count, char **words)
{
	struct lent memory = lent(words[1], NULL);
	unsigned char *base = memory.base;
	uintptr_t before = (uintptr_t)own - 4096;

	(void)count;
	printf("null %d\n", teeperf_attach(NULL, memory.length));
	printf("misaligned %d\n", teeperf_attach(base + 4, memory.length - 4));
	printf("small %d\n", teeperf_attach(base, TEEPERF_LEAST - 1));
	printf("endless %d\n", teeperf_attach((void *)((uintptr_t)-64), TEEPERF_LEAST));
	memcpy(own, base, 4096);
	printf("inside %d\n", teeperf_attach(own, sizeof(own)));
	printf("partly %d\n", teeperf_attach((void *)before, 2 * 4096 + TEEPERF_LEAST));
	base[7]++;
	printf("unknown %d\n", teeperf_attach(base, memory.length));
	base[7]--;
	base[8]++;
	printf("clock %d\n", teeperf_attach(base, memory.length));
	base[8]--;
	printf("none %d\n", teeperf_recording());
	printf("right %d\n", teeperf_attach(base, memory.length));
	printf("again %d\n", teeperf_attach(base, memory.length));
	printf("recording %d\n", teeperf_recording());
	teeperf_detach();
	teeperf_detach();
	return 0;
}
