/* Ways out of a function that are no returns. perf tells the truth.
 *
 * longjmp: functions that are left by it, three levels at once; contexts: two stacks that the
 * program switches by itself; tails: functions that end in a call of another one. */
#define _GNU_SOURCE
#include "truth.h"
#include <setjmp.h>
#include <ucontext.h>

static jmp_buf out;

ALONE uint64_t fail(uint64_t x)
{
	UNITS(x, 7000)
	sink = x;
	longjmp(out, 1);
}

ALONE uint64_t parse(uint64_t x)
{
	UNITS(x, 2300)
	return fail(x) + 1;
}

ALONE uint64_t attempt(uint64_t x)
{
	UNITS(x, 4500)
	return parse(x) + 1;
}

WORK(recover, 8900)

OUTSIDE static void longjmps(unsigned rounds)
{
	for (volatile unsigned i = 0; i < rounds * 100; i++) {
		if (setjmp(out) == 0)
			sink = attempt(sink);
		sink = recover(sink);
		jitter(2000);
	}
}

static ucontext_t main_context, other_context;
static char other_stack[1 << 16] __attribute__((aligned(64)));

WORK(here, 300)
WORK(elsewhere, 900)

ALONE void produce(void)
{
	for (;;) {
		sink = elsewhere(sink);
		swapcontext(&other_context, &main_context);
		sink = elsewhere(sink);
	}
}

ALONE void consume(unsigned times)
{
	while (times--) {
		sink = repeat(here, 4, sink);
		swapcontext(&main_context, &other_context);
	}
}

OUTSIDE static void contexts(unsigned rounds)
{
	getcontext(&other_context);
	other_context.uc_stack.ss_sp = other_stack;
	other_context.uc_stack.ss_size = sizeof other_stack;
	other_context.uc_link = &main_context;
	makecontext(&other_context, produce, 0);
	for (volatile unsigned i = 0; i < rounds * 10; i++) {
		consume(10);
		jitter(2000);
	}
}

WORK(last, 30)

ALONE uint64_t middle(uint64_t x)
{
	UNITS(x, 60)
	return last(x);
}

ALONE uint64_t head(uint64_t x)
{
	UNITS(x, 10)
	return middle(x);
}

OUTSIDE static void tails(unsigned rounds)
{
	for (unsigned i = 0; i < rounds * 100; i++) {
		sink = repeat(head, 100, sink);
		jitter(1000);
	}
}

SCENARIOS({"longjmp", longjmps}, {"contexts", contexts}, {"tails", tails})
