/* A generator on a stack of its own, then its return to the linked context. */
#include <stdio.h>
#include <ucontext.h>

static ucontext_t main_context, generator_context;
static char stack[1 << 16];
static int value;

__attribute__((noinline)) void yield(int n)
{
	value = n;
	swapcontext(&generator_context, &main_context);
}

void generator(int from, int to)
{
	for (int i = from; i < to; i++)
		yield(i);
	value = -1;
}

__attribute__((noinline)) void consume(int n)
{
	printf("%d ", n);
}

__attribute__((noinline)) int next(void)
{
	swapcontext(&main_context, &generator_context);
	return value;
}

int main(void)
{
	for (int round = 0; round < 2; round++) {
		getcontext(&generator_context);
		generator_context.uc_stack.ss_sp = stack;
		generator_context.uc_stack.ss_size = sizeof stack;
		generator_context.uc_link = &main_context;
		makecontext(&generator_context, (void (*)(void))generator, 2, 3, 6);
		while (next() >= 0)
			consume(value);
	}
	printf("\n");
	return 0;
}
