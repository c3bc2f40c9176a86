/* Memory that comes and goes, each time at another address; the old place can be touched no more. */
#include "lent.h"

#define TIMES 2000

NO_HOOK const char *teeperf_port_name(void)
{
	return "comings";
}

static CALLED void within(void)
{
	DOES_SOMETHING;
}

static CALLED void without(void)
{
	DOES_SOMETHING;
}

static CALLED void across(const char *path, int times)
{
	struct lent memory = { 0 };
	void *last = NULL;

	for (; times; times--) {
		memory = lent(path, NULL);
		if (memory.base == last)
			exit(5);
		attach(memory);
		within();
		within();
		teeperf_detach();
		without();
		/* Nothing else comes to lie there: whoever touches it ends here. */
		if (mmap(memory.base, memory.length, PROT_NONE,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE, -1, 0) == MAP_FAILED)
			exit(5);
		if (last)
			munmap(last, memory.length);
		last = memory.base;
	}
	memory = lent(path, NULL);
	attach(memory);
}

NO_HOOK int main(int count, char **words)
{
	(void)count;
	attach(lent(words[1], NULL));
	within();
	teeperf_detach();
	across(words[1], TIMES);
	within();
	teeperf_detach();
	return 0;
}
