/* longjmp out of so many frames, in all spellings. */
#include <setjmp.h>
#include <stdio.h>

static jmp_buf place;
static sigjmp_buf signal_place;
static volatile int count;

__attribute__((noinline)) void down(int n, int how)
{
	if (n)
		down(n - 1, how);
	else if (how == 0)
		longjmp(place, 1);
	else if (how == 1)
		_longjmp(place, 1);
	else
		siglongjmp(signal_place, 1);
	count++;
}

__attribute__((noinline)) void after(void)
{
	count++;
}

__attribute__((noinline)) void once(int how)
{
	int came_back = how == 0 ? setjmp(place) : how == 1 ? _setjmp(place) : sigsetjmp(signal_place, 1);
	if (!came_back)
		down(5, how);
	after();
}

int main(void)
{
	for (int how = 0; how < 3; how++)
		once(how);
	printf("%d\n", count);
	return 0;
}
