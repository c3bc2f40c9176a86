// The work of a simulated enclave without one: `native_enclave THREADS ROUNDS`.
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include "calls.h"

long ecall(long index, void *argument, void *tcs);
long ocall(long index, void *argument, void *tcs)
{
	(void)index, (void)argument, (void)tcs;
	abort();
}

static long rounds;

static void *run(void *unused)
{
	struct work work = { rounds, 1, 0 };
	(void)unused;
	if (ecall(ECALL_WORK, &work, NULL))
		exit(97);
	return NULL;
}

int main(int count, char **arguments)
{
	if (count < 3)
		return 2;
	int threads = atoi(arguments[1]);
	rounds = atol(arguments[2]);
	pthread_t others[16];
	for (int i = 1; i < threads; i++)
		pthread_create(&others[i], NULL, run, NULL);
	run(NULL);
	for (int i = 1; i < threads; i++)
		pthread_join(others[i], NULL);
	return 0;
}
