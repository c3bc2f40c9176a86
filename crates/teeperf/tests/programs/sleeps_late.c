/* Fills a small tree with a recursion; what is called then finds no room, and sleeps: 250 ms in all, 50 ms of them
 * serve itself, 100 ms inner, some of it before and some behind what they call. Tells calls. */
#include <stdio.h>
#include <unistd.h>

#define NOINLINE __attribute__((noinline, noclone))

NOINLINE void fill(int depth)
{
	if (depth > 1)
		fill(depth - 1);
	__asm__ volatile("" ::: "memory");
}

NOINLINE void waits(void)
{
	usleep(10000);
}

NOINLINE void inner(void)
{
	usleep(10000);
	for (int i = 0; i < 5; i++)
		waits();
	usleep(40000);
}

NOINLINE void serve(void)
{
	inner();
	inner();
	usleep(50000);
}

int main(void)
{
	fill(1000);
	serve();
	printf("calls main 1\ncalls fill 1000\ncalls serve 1\ncalls inner 2\ncalls waits 10\n");
	return 0;
}
