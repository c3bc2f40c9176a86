// Works for 5 ms of processor time by itself, then loads a library (its argument) and is called back by that for 10 ms.
#include <dlfcn.h>
#include <time.h>

static long now(void)
{
	struct timespec time;
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
	return time.tv_sec * 1000000000L + time.tv_nsec;
}

int busy(int milliseconds)
{
	long begun = now();
	while (now() - begun < milliseconds * 1000000L)
		;
	return milliseconds;
}

int main(int count, char **arguments)
{
	busy(5);
	void *library = dlopen(arguments[1], RTLD_NOW);
	int (*through)(int (*)(int)) = (int (*)(int (*)(int)))dlsym(library, "through");
	return through(busy) != 10;
}
