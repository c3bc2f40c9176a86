/* A hooked resolver, which a static program runs before thread-local storage exists. */
#include <stdio.h>

int real(int n)
{
	return n + 1;
}

int (*resolve(void))(int)
{
	return real;
}

int chosen(int n) __attribute__((ifunc("resolve")));

int main(void)
{
	int sum = 0;
	for (int i = 0; i < 100; i++)
		sum = chosen(sum);
	printf("%d\n", sum);
	return sum != 100;
}
