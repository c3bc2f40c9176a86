/* Jumps out of a pause, past a mark that was made in it, a hundred times. */
#include <setjmp.h>
#include <teeperf.h>

static jmp_buf outer, inner;
static volatile int sum;

__attribute__((noinline)) void after(void)
{
	sum++;
}

__attribute__((noinline)) void deeper(void)
{
	if (!setjmp(inner))
		longjmp(outer, 1);
	sum++;
}

__attribute__((noinline)) void deep(void)
{
	teeperf_pause();
	deeper();
	sum++;
}

__attribute__((noinline)) void top(void)
{
	if (!setjmp(outer))
		deep();
	teeperf_resume();
	after();
}

int main(void)
{
	for (int i = 0; i < 100; i++)
		top();
	return 0;
}
