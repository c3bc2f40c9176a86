/* Values that live over the call of a function that touches few registers: with -fipa-ra gcc leaves
   them in registers that are the callee's. -p takes that option away, and the pragma brings it
   back. */
#pragma GCC optimize("O2")
#include <stdio.h>

static volatile unsigned long values[12] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12};
static volatile unsigned long count;

static __attribute__((noinline)) void counts(void)
{
	count++;
}

static __attribute__((noinline)) unsigned long weighs(void)
{
	unsigned long a = values[0], b = values[1], c = values[2], d = values[3], e = values[4];
	unsigned long f = values[5], g = values[6], h = values[7], i = values[8], j = values[9];
	unsigned long k = values[10], l = values[11];
	counts();
	return (a ^ b * 3 ^ c * 5 ^ d * 7) + (e * 11 ^ f * 13 ^ g * 17 ^ h * 19)
		+ (i * 23 ^ j * 29 ^ k * 31 ^ l * 37);
}

int main(void)
{
	unsigned long sum = 0;
	for (int i = 0; i < 1000; i++)
		sum += weighs();
	printf("sum %lu, count %lu\n", sum, count);
	return 0;
}
