// An enclave of three functions that do the same work, 50, 30 and 20 times, and a few ECALLs around them.
#include "calls.h"

// Work that no compiler shortens: each step needs the one before.
static inline __attribute__((always_inline)) unsigned long steps(unsigned long seed, long count)
{
	for (long i = 0; i < count * 400; i++) {
		seed ^= seed << 13;
		seed ^= seed >> 7;
		seed ^= seed << 17;
		__asm__ volatile("" : "+r"(seed));
	}
	return seed;
}

#define APART __attribute__((noinline, noipa))
// A call is not the last thing that a function does, so that it stays below what it calls.
#define AND_BACK __asm__ volatile("")
// GCC leaves the frame out, whatever it is told, where a function uses no stack.
#define FRAMED volatile unsigned long on_stack = seed; (void)on_stack

APART unsigned long half(unsigned long seed) { FRAMED; return steps(seed, 50); }
APART unsigned long three_tenths(unsigned long seed) { FRAMED; return steps(seed, 30); }
APART unsigned long fifth(unsigned long seed) { FRAMED; return steps(seed, 20); }
APART unsigned long in_exception(unsigned long seed) { FRAMED; return steps(seed, 100); }

APART unsigned long nested_once(unsigned long seed)
{
	seed = fifth(seed);
	AND_BACK;
	return seed;
}

APART unsigned long main_loop(struct work *work)
{
	unsigned long seed = work->seed;
	for (long i = 0; i < work->rounds; i++) {
		seed = half(seed);
		seed = three_tenths(seed);
		seed = nested_once(seed);
	}
	AND_BACK;
	return seed;
}

extern long ocall(long index, void *argument, void *tcs);

// Divides by zero: the exception is handled inside, by a second entry.
static APART void fault(unsigned long seed)
{
	FRAMED;
	__asm__ volatile("xor %%ecx, %%ecx\n div %%ecx" ::: "rax", "rcx", "rdx", "cc");
}

static volatile unsigned long sink;

// `interrupted` has the registers of the frame below: RIP is at 136. `div %ecx` has two bytes.
long handle_exception(unsigned long *interrupted)
{
	sink = in_exception(7);
	interrupted[17] += 2;
	return 0;
}

long ecall(long index, void *argument, void *tcs)
{
	struct work *work = argument;
	switch (index) {
	case ECALL_WORK:
		work->seed = main_loop(work);
		return 0;
	case ECALL_OCALLS:
		for (long i = 0; i < work->rounds; i++) {
			struct work once = { 1, work->seed, 0 };
			once.seed = main_loop(&once);
			work->seed = once.seed;
			if (ocall(work->is_nested ? OCALL_NESTED : OCALL_OUTSIDE, work, tcs) != 5)
				return -2;
		}
		return 0;
	case ECALL_EXCEPTIONS:
		for (long i = 0; i < work->rounds; i++)
			fault(i);
		return 0;
	case ECALL_FLOATS: {
		double sum = 0, term = 1;
		for (long i = 1; i < work->rounds * 1000; i++) {
			__asm__ volatile("" : "+x"(sum), "+x"(term));
			term = -term;
			sum += term / (2 * i - 1);
		}
		return (long)(sum * -4000000);
	}
	}
	return -1;
}
