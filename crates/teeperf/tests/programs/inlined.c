/* Nearly all of the time is that of a function that the compiler inlines. */
static volatile unsigned sink;

static inline __attribute__((always_inline)) unsigned step(unsigned x)
{
	for (int i = 0; i < 200; i++)
		x = x * 1664525 + 1013904223;
	return x;
}

__attribute__((noinline)) void outer(unsigned rounds)
{
	unsigned x = 1;
	while (rounds--)
		x = step(x);
	sink = x;
}

int main(void)
{
	for (int i = 0; i < 200; i++)
		outer(5000);
	return 0;
}
