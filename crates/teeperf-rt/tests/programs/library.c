/* A library with hooks. */
static volatile unsigned long sum;

__attribute__((noinline)) void in_library(void)
{
	sum++;
}

void library(int n)
{
	while (n--)
		in_library();
}

__attribute__((constructor)) void comes(void)
{
}

__attribute__((destructor)) void goes(void)
{
	in_library();
}
