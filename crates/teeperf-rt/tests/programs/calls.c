/* A known number of calls: fib(n) makes 2 * Fib(n + 1) - 1 of them, in each of so many threads. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

__attribute__((noinline)) unsigned long fib(unsigned n)
{
	return n < 2 ? n : fib(n - 1) + fib(n - 2);
}

void *run(void *n)
{
	return (void *)fib(*(unsigned *)n);
}

int main(int argc, char **argv)
{
	unsigned n = argc > 1 ? atoi(argv[1]) : 10;
	int threads = argc > 2 ? atoi(argv[2]) : 0;
	pthread_t ids[64];
	for (int i = 0; i < threads; i++)
		pthread_create(&ids[i], 0, run, &n);
	for (int i = 0; i < threads; i++)
		pthread_join(ids[i], 0);
	printf("%lu\n", fib(n));
	return 0;
}
