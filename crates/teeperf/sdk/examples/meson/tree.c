/* A tree of calls: each has two of the next depth. */
#include <stdio.h>

static __attribute__((noinline)) int leaf(int number)
{
	return number & 1;
}

static __attribute__((noinline)) int branch(int depth, int number)
{
	if (depth == 0)
		return leaf(number);
	return branch(depth - 1, 2 * number) + branch(depth - 1, 2 * number + 1);
}

int main(void)
{
	printf("%d\n", branch(6, 1));
	return 0;
}
