/* What the eight kernels share: two workers over one range of items, seeded input, a clock
 * and one line of output. The kernels follow the shapes of the Phoenix programs (Ranger et
 * al., "Evaluating MapReduce for Multi-core and Multiprocessor Systems", HPCA 2007); the code
 * is our own. A kernel's input stands for a file that was read: making it is neither timed
 * nor hooked. */
#ifndef MAPREDUCE_H
#define MAPREDUCE_H
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* Not part of the program that is measured: input, clock and output. */
#define MR_OUTSIDE __attribute__((no_instrument_function))

enum { MR_WORKERS = 2 };

/* Works on the items [begin, end); `worker` is 0 .. MR_WORKERS-1. */
typedef void mr_map(void *shared, int worker, size_t begin, size_t end);

struct mr_part {
	pthread_t thread;
	mr_map *map;
	void *shared;
	int worker;
	size_t begin, end;
};

static void *mr_start(void *argument)
{
	struct mr_part *part = argument;
	part->map(part->shared, part->worker, part->begin, part->end);
	return NULL;
}

/* Splits [0, items) evenly between the workers and waits for all of them. */
static void mr_run(size_t items, mr_map *map, void *shared)
{
	struct mr_part parts[MR_WORKERS];
	for (int w = 0; w < MR_WORKERS; w++) {
		parts[w] = (struct mr_part){.map = map, .shared = shared, .worker = w,
			.begin = items * w / MR_WORKERS, .end = items * (w + 1) / MR_WORKERS};
		if (pthread_create(&parts[w].thread, NULL, mr_start, &parts[w])) {
			perror("pthread_create");
			exit(1);
		}
	}
	for (int w = 0; w < MR_WORKERS; w++)
		pthread_join(parts[w].thread, NULL);
}

/* splitmix64 (Steele, Lea, Flood, OOPSLA 2014): the same numbers on every machine. */
MR_OUTSIDE static inline uint64_t mr_random(uint64_t *state)
{
	uint64_t z = *state += 0x9e3779b97f4a7c15;
	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
	z = (z ^ z >> 27) * 0x94d049bb133111eb;
	return z ^ z >> 31;
}

MR_OUTSIDE static inline void *mr_allocate(size_t bytes)
{
	void *memory = calloc(bytes, 1);
	if (!memory) {
		perror("calloc");
		exit(1);
	}
	return memory;
}

MR_OUTSIDE static inline double mr_seconds(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec + t.tv_nsec * 1e-9;
}

/* FNV-1a over the result: equal on every machine and with every compiler. */
MR_OUTSIDE static inline uint64_t mr_checksum(const void *result, size_t bytes)
{
	uint64_t hash = 0xcbf29ce484222325;
	for (const unsigned char *p = result; bytes--; p++)
		hash = (hash ^ *p) * 0x100000001b3;
	return hash;
}

MR_OUTSIDE static inline int mr_report(const char *kernel, uint64_t checksum, double seconds)
{
	return printf("kernel=%s checksum=%016llx seconds=%.6f\n", kernel, (unsigned long long)checksum, seconds) < 0;
}
#endif
