/* "block N": N threads that each make a few calls and then wait for all others. "short N": N threads one
 * after another, 50 at a time. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static pthread_barrier_t barrier;
static unsigned long done;

__attribute__((noinline)) void step(void)
{
	__atomic_fetch_add(&done, 1, __ATOMIC_RELAXED);
}

void *waits(void *unused)
{
	for (int i = 0; i < 10; i++)
		step();
	pthread_barrier_wait(&barrier);
	step();
	return unused;
}

void *ends(void *unused)
{
	step();
	return unused;
}

int main(int argc, char **argv)
{
	int n = argc > 2 ? atoi(argv[2]) : 10;
	pthread_attr_t small;
	pthread_t *ids = malloc(sizeof *ids * n);
	pthread_attr_init(&small);
	pthread_attr_setstacksize(&small, 1 << 16);
	if (argc > 1 && !strcmp(argv[1], "block")) {
		pthread_barrier_init(&barrier, 0, n);
		for (int i = 0; i < n; i++)
			if (pthread_create(&ids[i], &small, waits, 0))
				return 1;
		for (int i = 0; i < n; i++)
			pthread_join(ids[i], 0);
	} else {
		for (int i = 0; i < n; i += 50) {
			for (int j = i; j < i + 50 && j < n; j++)
				if (pthread_create(&ids[j], &small, ends, 0))
					return 1;
			for (int j = i; j < i + 50 && j < n; j++)
				pthread_join(ids[j], 0);
		}
	}
	printf("%lu\n", done);
	return 0;
}
