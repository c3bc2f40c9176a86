// Exceptions through hooked frames; prints what was caught.
#include <cstdio>
#include <stdexcept>

static volatile int sum;

__attribute__((noinline)) void thrower(int n)
{
	sum = sum + n;
	if (n == 0)
		throw std::runtime_error("out");
	thrower(n - 1);
	sum = sum + 1;
}

__attribute__((noinline)) void after()
{
	sum = sum + 1;
}

__attribute__((noinline)) int catcher(int n)
{
	try {
		thrower(n);
	} catch (const std::runtime_error &) {
		after();
		return 1;
	}
	return 0;
}

int main()
{
	int caught = 0;
	for (int i = 0; i < 4; i++)
		caught += catcher(i);
	std::printf("%d\n", caught);
	return caught != 4;
}
