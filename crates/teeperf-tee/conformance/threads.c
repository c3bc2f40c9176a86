/* Threads that record what another has attached: those there are, those that come later, those that end. */
#include <pthread.h>

#include "lent.h"

#define THREADS 4
#define ROUNDS 30

static pthread_barrier_t barrier;

NO_HOOK const char *teeperf_port_name(void)
{
	return "threads";
}

static CALLED void leaf(void)
{
	DOES_SOMETHING;
}

static CALLED void middle(void)
{
	leaf();
	leaf();
	DOES_SOMETHING;
}

/* Works whenever memory is attached, and does not touch it between. */
static NO_HOOK void *lives_on(void *unused)
{
	int round, i;

	for (round = 0; round < ROUNDS; round++) {
		pthread_barrier_wait(&barrier);
		for (i = 0; i < 300; i++)
			middle();
		pthread_barrier_wait(&barrier);
	}
	teeperf_end_thread();
	return unused;
}

static NO_HOOK void *ends(void *unused)
{
	middle();
	teeperf_end_thread();
	return unused;
}

NO_HOOK int main(int count, char **words)
{
	pthread_t lasting[THREADS], short_lived;
	struct lent memory = { 0 }, last = { 0 };
	int round, i;

	(void)count;
	pthread_barrier_init(&barrier, NULL, THREADS + 1);
	for (i = 0; i < THREADS; i++)
		pthread_create(&lasting[i], NULL, lives_on, NULL);
	for (round = 0; round < ROUNDS; round++) {
		memory = lent(words[1], NULL);
		attach(memory);
		if (last.base)
			munmap(last.base, last.length);
		last = memory;
		pthread_barrier_wait(&barrier);
		middle();
		pthread_create(&short_lived, NULL, ends, NULL);
		pthread_join(short_lived, NULL);
		pthread_barrier_wait(&barrier);
		if (round + 1 < ROUNDS)
			teeperf_detach();
	}
	for (i = 0; i < THREADS; i++)
		pthread_join(lasting[i], NULL);
	teeperf_detach();
	return 0;
}
