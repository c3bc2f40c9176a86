/* Linked with a hooked library; has a function of the same name as the library, which then calls this one. */
#include <stdio.h>

static volatile unsigned long sum;

void library(int n);

__attribute__((noinline)) void in_library(void)
{
	sum++;
}

int main(void)
{
	library(50);
	printf("%lu\n", sum);
	return sum != 50 && sum != 51;
}
