#include "work.h"

#include "board.h"

/* A function that stays one, with a call that stays one. */
#define CALLED __attribute__((noinline, noclone))
#define DOES_SOMETHING __asm__ volatile("" ::: "memory")

static CALLED void leaf(void)
{
	DOES_SOMETHING;
}

static CALLED void middle(void)
{
	int i;

	for (i = 0; i < 5; i++)
		leaf();
	DOES_SOMETHING;
}

static CALLED void round(void)
{
	middle();
	middle();
	middle();
	DOES_SOMETHING;
}

CALLED void rounds(int count)
{
	while (count-- > 0)
		round();
	DOES_SOMETHING;
}

static CALLED void short_wait(void)
{
	uint64_t until = board_time() + BOARD_HZ / 100;

	while (board_time() < until)
		;
}

static CALLED void long_wait(void)
{
	uint64_t until = board_time() + BOARD_HZ / 100 * 3;

	while (board_time() < until)
		;
}

CALLED void waits(void)
{
	int i;

	for (i = 0; i < 10; i++) {
		long_wait();
		short_wait();
	}
	DOES_SOMETHING;
}

CALLED void beat(void)
{
	leaf();
	DOES_SOMETHING;
}
