/* Sums its calls in its own memory, and hands them over in pieces of a size: `take FILE SIZE`; with 0 in lines of text.
 * Some are taken in the midst of calls. With THREADS so many threads do so. */
#include <pthread.h>
#include <stdint.h>
#include <string.h>
#include <time.h>

#include "lent.h"

#ifndef THREADS
#define THREADS 1
#endif

static FILE *file;
static size_t size;
static pthread_mutex_t one_writes = PTHREAD_MUTEX_INITIALIZER;
static uint64_t tree[4096];

NO_HOOK const char *teeperf_port_name(void)
{
	return "take";
}

NO_HOOK void *teeperf_port_tree(size_t *length)
{
	*length = sizeof(tree);
	return tree;
}

/* For each thread. */
NO_HOOK void *teeperf_port_arcs(size_t *length)
{
	*length = 4096;
	return calloc(1, *length);
}

NO_HOOK uint64_t teeperf_port_counter(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

NO_HOOK uint64_t teeperf_port_counter_hz(void)
{
	return 1000000000;
}

/* So many pieces at most; whether there were so many. */
static NO_HOOK int take(int pieces)
{
	char buffer[8192];
	size_t length = 1;

	for (; pieces && length; pieces--) {
		pthread_mutex_lock(&one_writes);
		/* Nobody writes behind what it was given. */
		memset(buffer, 0x5a, sizeof(buffer));
		length = size ? teeperf_take(buffer, size) : teeperf_take_line(buffer, 1000);
		if (size && (length > size || buffer[size] != 0x5a))
			exit(5);
		if (!size && (strlen(buffer) < length || buffer[1000] != 0x5a))
			exit(6);
		fwrite(buffer, 1, length, file);
		if (!size && length)
			fprintf(file, "\r\nsomething else\n[%d] ", pieces);
		pthread_mutex_unlock(&one_writes);
	}
	return length > 0;
}

static CALLED void leaf(void)
{
	DOES_SOMETHING;
}

static CALLED void middle(int round)
{
	int i;

	for (i = 0; i < 5; i++)
		leaf();
	if (round % 37 == 0)
		take(1);
	DOES_SOMETHING;
}

static CALLED void deep(int depth)
{
	if (depth > 1)
		deep(depth - 1);
	DOES_SOMETHING;
}

static CALLED void outer(int round)
{
	int i;

	for (i = 0; i < 3; i++)
		middle(round);
	deep(20);
	DOES_SOMETHING;
}

static NO_HOOK void *work(void *unused)
{
	int round;

	for (round = 0; round < 500; round++) {
		outer(round);
		if (round % 50 == 0)
			while (take(1))
				;
	}
	/* The round that is under way, and what it has not. */
	take(-1);
	take(-1);
	if (take(1))
		exit(7);
	return unused;
}

NO_HOOK int main(int count, char **words)
{
	pthread_t threads[THREADS];
	int i;

	if (count != 3)
		return 2;
	file = fopen(words[1], "w");
	size = strtoul(words[2], NULL, 10);
	for (i = 1; i < THREADS; i++)
		pthread_create(&threads[i], NULL, work, NULL);
	work(NULL);
	for (i = 1; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	return fclose(file) != 0;
}
