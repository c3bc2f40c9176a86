/* Threads that park for good in one function while the first works: they have no CPU time. */
#include <pthread.h>
#include <stdlib.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t never = PTHREAD_COND_INITIALIZER;

__attribute__((noinline)) void *park(void *unused)
{
	pthread_mutex_lock(&lock);
	for (;;)
		pthread_cond_wait(&never, &lock);
	return unused;
}

__attribute__((noinline)) unsigned work(unsigned x)
{
	for (int i = 0; i < 20000; i++)
		x = x * 1664525 + 1013904223;
	return x;
}

int main(void)
{
	pthread_t thread;
	unsigned x = 1;
	for (int i = 0; i < 5; i++)
		pthread_create(&thread, 0, park, 0);
	for (int i = 0; i < 10000; i++)
		x = work(x);
	exit(x == 42);
}
