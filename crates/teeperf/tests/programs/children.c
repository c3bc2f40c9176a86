/* Children that live for about two milliseconds, with work of their own, page faults and system
 * calls. Prints the CPU time of each, nanoseconds, by the children's own clock. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define APART __attribute__((noinline))

static volatile unsigned long sink;
static int source;
static char bytes[16384];

static long long now(void)
{
	struct timespec time;
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
	return time.tv_sec * 1000000000LL + time.tv_nsec;
}

APART static void works(void)
{
	for (unsigned i = 0; i < 40000; i++)
		sink = sink * 3 + i;
}

APART static void touches(void)
{
	char *memory = mmap(0, 1 << 18, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	for (unsigned i = 0; i < 1 << 18; i += 4096)
		memory[i] = 1;
	munmap(memory, 1 << 18);
}

APART static void reads(void)
{
	sink += read(source, bytes, sizeof bytes);
}

static void time_all(long long *spent)
{
	long long began = now();
	works();
	long long worked = now();
	touches();
	long long touched = now();
	reads();
	long long all = now();
	spent[0] += worked - began;
	spent[1] += touched - worked;
	spent[2] += all - touched;
}

int main(void)
{
	long long *spent = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	source = open("/dev/urandom", O_RDONLY);
	for (unsigned child = 0; child < 400; child++) {
		pid_t id = fork();
		if (id == 0) {
			for (unsigned i = 0; i < 10; i++)
				time_all(spent);
			exit(0);
		}
		waitpid(id, 0, 0);
	}
	printf("%lld %lld %lld\n", spent[0], spent[1], spent[2]);
	return 0;
}
