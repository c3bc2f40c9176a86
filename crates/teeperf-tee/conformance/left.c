/* Compiled with -pg, for several threads: what becomes of calls that a thread has counted which ends, or goes on, where
 * nobody takes them; and of those of two threads that are given the same memory.
 */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <teeperf_tee.h>

#define PLAIN __attribute__((no_instrument_function))

/* As teeperf-wire lays an arena out: arena.rs, shared.rs. */
enum { LENGTH = 1 << 20, CONTROL = 132, STOPPED = 2, ANSWERED = 140, ENDED = 144, LOSSES = 4096 + 2048, LINES = 32, LINE = 64 };

static unsigned char arena[LENGTH] __attribute__((aligned(4096)));
static uint64_t memories[4][1024];
static int given;
static int gives_one;

PLAIN void *teeperf_port_arcs(size_t *length)
{
	*length = sizeof(memories[0]);
	return memories[gives_one ? 0 : given++];
}

__attribute__((noinline, noclone)) void called(void)
{
	__asm__ volatile("" ::: "memory");
}

PLAIN static void check(int is_right, const char *what)
{
	if (!is_right) {
		printf("WRONG %s\n", what);
		exit(1);
	}
}

PLAIN static uint64_t lost(void)
{
	uint64_t sum = 0, line = 0;
	size_t at = 0;

	for (at = 0; at < LINES; at++) {
		memcpy(&line, arena + LOSSES + at * LINE, sizeof(line));
		sum += line;
	}
	return sum;
}

PLAIN static uint32_t number(size_t at)
{
	uint32_t value = 0;

	memcpy(&value, arena + at, sizeof(value));
	return value;
}

static pthread_barrier_t barrier;

PLAIN static void *ends(void *unused)
{
	int i = 0;

	for (i = 0; i < 100; i++)
		called();
	teeperf_end_thread();
	return unused;
}

PLAIN static void *stays(void *unused)
{
	int i = 0;

	for (i = 0; i < 10; i++)
		called();
	pthread_barrier_wait(&barrier);
	pthread_barrier_wait(&barrier);
	teeperf_end_thread();
	return unused;
}

PLAIN static void run(void *(*thread)(void *))
{
	pthread_t one;

	check(pthread_create(&one, NULL, thread, NULL) == 0, "a thread");
	pthread_join(one, NULL);
}

PLAIN int main(void)
{
	pthread_t one;

	memcpy(arena, "TPARENA\x01", 8);
	arena[8] = 1; /* the tick is the clock */
	arena[12] = 2;
	arena[16] = 7;
	arena[24 + 1] = 75;

	/* It has ended before anything was attached. */
	run(ends);
	check(teeperf_attach(arena, LENGTH) == 0, "attaching");
	check(lost() == 100, "calls of a thread that has ended");
	/* Attached, it hands them over. */
	run(ends);
	check(lost() == 100, "calls that are handed over");

	/* It goes on when another detaches. */
	pthread_barrier_init(&barrier, NULL, 2);
	check(pthread_create(&one, NULL, stays, NULL) == 0, "a thread");
	pthread_barrier_wait(&barrier);
	teeperf_detach();
	check(number(ANSWERED) == UINT32_MAX, "somebody still counts");
	pthread_barrier_wait(&barrier);
	pthread_join(one, NULL);
	check(teeperf_attach(arena, LENGTH) == 0, "attaching again");
	check(lost() == 110, "calls of one that was still attached");
	check(number(ENDED) == 0, "nobody has ended without a word");
	/* It is given the memory in which main counts, and has none. */
	gives_one = 1;
	memset(memories[0], 0, sizeof(memories[0]));
	called();
	run(ends);
	check(lost() == 210, "calls of one that is given another's memory");
	teeperf_detach();
	check(number(ANSWERED) == 0, "nobody counts");

	/* In another arena it is not told again. */
	arena[16] = 8;
	memset(arena + LOSSES, 0, LINES * LINE);
	check(teeperf_attach(arena, LENGTH) == 0, "attaching another");
	teeperf_detach();
	check(lost() == 0, "calls that were told");

	/* Recording has ended before it ends. */
	gives_one = 0;
	check(teeperf_attach(arena, LENGTH) == 0, "attaching");
	arena[CONTROL] = STOPPED;
	run(ends);
	teeperf_detach();
	arena[CONTROL] = 0;
	arena[16] = 9;
	check(teeperf_attach(arena, LENGTH) == 0, "attaching a third");
	check(lost() == 100, "calls behind the end of recording");
	teeperf_detach();
	printf("all is told\n");
	return 0;
}
