/* Compiled with -pg: calls with parameters of every kind, from one thread, and how often each function was
 * called by its own count. Linked with the library it lends itself memory as a host would, moves the clock there
 * in the midst of all, and prints what is handed over. With YARDSTICK it leaves the counting to the C library.
 */
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PLAIN __attribute__((no_instrument_function))
#define COUNTED __attribute__((noinline, noclone))

enum { ROUNDS = 300, FUNCTIONS = 12 };

static uint64_t truth[FUNCTIONS];
/* The clock's word, and the time that it has moved in all. */
static volatile uint32_t *tick;
static uint64_t moved;

static inline PLAIN __attribute__((always_inline)) void called(int number)
{
	truth[number]++;
	/* The next hook, of whatever function, sees that it has moved. */
	if (tick) {
		*tick += 3;
		moved += 3;
	}
}

PLAIN static void check(int is_right, const char *what)
{
	if (!is_right) {
		printf("WRONG %s\n", what);
		exit(1);
	}
}

struct large {
	long numbers[9];
};
typedef float four __attribute__((vector_size(16)));

COUNTED double floats(double a, float b, double c, float d, double e, float f, double g, float h, double i, float j)
{
	called(0);
	return a + 2 * b + 4 * c + 8 * d + 16 * e + 32 * f + 64 * g + 128 * h + 256 * i + 512 * j;
}

COUNTED long integers(int a, long b, short c, char d, long e, int f, long g, unsigned h, long i, int j, long long k)
{
	called(1);
	return a + 2 * b + 4 * c + 8 * d + 16 * e + 32 * f + 64 * g + 128 * h + 256 * i + 512 * j + 1024 * (long)k;
}

COUNTED double variable(int count, ...)
{
	va_list rest;
	double sum = 0;

	called(2);
	va_start(rest, count);
	while (count-- > 0) {
		sum += va_arg(rest, double);
		sum += va_arg(rest, int);
	}
	va_end(rest);
	return sum;
}

COUNTED struct large structure(struct large in, long more)
{
	struct large out = in;
	int i = 0;

	called(3);
	for (i = 0; i < 9; i++)
		out.numbers[i] += more * i;
	return out;
}

COUNTED four vectors(four a, four b, four c, four d)
{
	called(4);
	return a + 2 * b + 4 * c + 8 * d;
}

COUNTED long recursive(long depth)
{
	called(5);
	/* No sum, which a compiler would make a loop of. */
	return depth == 0 ? 0 : (recursive(depth - 1) ^ depth) + 1;
}

COUNTED int first(int a)
{
	called(6);
	return a + 1;
}

COUNTED int second(int a)
{
	called(7);
	return a + 2;
}

COUNTED int third(int a)
{
	called(8);
	return a + 3;
}

static int (*volatile table[3])(int) = { first, second, third };

COUNTED int through_pointers(int a)
{
	int i = 0;

	called(9);
	for (i = 0; i < 6; i++)
		a = table[i % 3](a);
	return a;
}

COUNTED int apply(int (*function)(int), int a)
{
	called(10);
	return function(a) + function(a + 1);
}

COUNTED int nested(int base)
{
	volatile int seen = 0;
#ifndef __clang__
	COUNTED int inner(int a)
	{
		/* It stands in front of `nested`, behind `apply`. */
		called(10);
		seen++;
		return a + base;
	}
	int sum = apply(inner, 5) + inner(7);
#else
	int sum = apply(first, 4 + base) + 2 * base + 5 - base - base + 7 + base - 7;
	seen = 3;
	sum = 18 + 3 * base;
#endif

	called(11);
	check(seen == 3, "frames of nested functions");
	return sum;
}

COUNTED void all(int i)
{
	struct large in = { { 1, 2, 3, 4, 5, 6, 7, 8, 9 } };
	struct large out;
	four a = { 1, 2, 3, 4 };
	four sum;
	long expected = 0;
	long depth = 0;

	check(floats(1, 2, 3, 4, 5, 6, 7, 8, 9, 10 + i) == 1 + 4 + 12 + 32 + 80 + 192 + 448 + 1024 + 2304 + 512.0 * (10 + i),
	      "floats");
	check(integers(1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11 + i) ==
		      1 + 4 + 12 + 32 + 80 + 192 + 448 + 1024 + 2304 + 5120 + 1024 * (11 + i),
	      "integers");
	check(variable(4, 0.5, 1, 1.5, 2, 2.5, 3, 3.5, i) == 8 + 6 + i, "variable arguments");
	out = structure(in, i);
	check(out.numbers[8] == 9 + 8 * i && out.numbers[0] == 1, "structures");
	sum = vectors(a, a + 1, a + 2, a + 3);
	check(sum[0] == 1 + 4 + 12 + 32 && sum[3] == 4 + 10 + 24 + 56, "vectors");
	for (depth = 1; depth <= 20; depth++)
		expected = (expected ^ depth) + 1;
	check(recursive(20) == expected, "recursion");
	check(through_pointers(i) == i + 12, "calls through pointers");
	check(nested(i) == 5 + i + 6 + i + 7 + i, "nested functions");
}

static const struct {
	const char *name;
	void *start;
} functions[FUNCTIONS + 1] = {
	{ "floats", floats },     { "integers", integers },
	{ "variable", variable }, { "structure", structure },
	{ "vectors", vectors },   { "recursive", recursive },
	{ "first", first },       { "second", second },
	{ "third", third },       { "through_pointers", through_pointers },
	{ "apply", apply },       { "nested", nested },
	{ "all", all },
};

#ifdef YARDSTICK

PLAIN int main(void)
{
	int i = 0;

	for (i = 0; i < ROUNDS; i++)
		all(i);
	for (i = 0; i < FUNCTIONS; i++)
		printf("%s %llu\n", functions[i].name, (unsigned long long)truth[i]);
	return 0;
}

#else

#include <teeperf_tee.h>

/* As teeperf-wire lays an arena out: arena.rs, shared.rs. */
enum {
	LENGTH = 1 << 20,
	CHUNK = 65536,
	CONTROL = 132,
	STOPPED = 2,
	TICK = 384,
	STATES = 4096 + 1024,
	CHUNKS = 4096 + 4096,
	FULL = 2,
	OF_ARCS = 4,
	FIRST_SITE = 0x1000,
	REACH = 16 << 20
};

static unsigned char arena[LENGTH] __attribute__((aligned(4096)));
static uint64_t memory[8192];
extern char teeperf_anchor[];

PLAIN void *teeperf_port_arcs(size_t *length)
{
	*length = sizeof(memory);
	return memory;
}

PLAIN static uint32_t number(size_t at)
{
	uint32_t value = 0;
	memcpy(&value, arena + at, sizeof(value));
	return value;
}

PLAIN static uint64_t wide(size_t at)
{
	return number(at) | (uint64_t)number(at + 4) << 32;
}

/* Index of the function that an address is in, as a word has it. */
PLAIN static int function(uint32_t word)
{
	uintptr_t address = ((uintptr_t)teeperf_anchor & ~(uintptr_t)1) - REACH + (word >> 1) - FIRST_SITE;
	uintptr_t nearest = 0;
	int found = -1;
	int i = 0;

	for (i = 0; word && i <= FUNCTIONS; i++) {
		uintptr_t start = (uintptr_t)functions[i].start & ~(uintptr_t)1;
		if (start <= address && start >= nearest) {
			nearest = start;
			found = i;
		}
	}
	return found;
}

static uint64_t calls[FUNCTIONS + 1][FUNCTIONS + 2];
static uint64_t spans, lost;

PLAIN static void gather(void)
{
	size_t index = 0;

	for (index = 0; index < (LENGTH - CHUNKS) / CHUNK; index++) {
		size_t chunk = CHUNKS + index * CHUNK;
		uint32_t arcs = number(chunk + 32), count = number(chunk + 36), i = 0;
		uint32_t state = number(STATES + index * 4);

		if (state != FULL || number(chunk + 40) != OF_ARCS)
			continue;
		lost += wide(chunk + 24);
		for (i = 0; i < count; i++) {
			size_t item = chunk + 64 + 32 * (size_t)i;
			int from = function(number(item)), to = function(number(item + 4));
			if (i >= arcs)
				spans += wide(item + 24);
			else if (to >= 0)
				calls[to][from + 1] += wide(item + 24);
		}
		memset(arena + STATES + index * 4, 0, 4);
		memset(arena + chunk, 0, CHUNK);
	}
}

PLAIN int main(void)
{
	int i = 0, round = 0, from = 0;

	memcpy(arena, "TPARENA\x01", 8);
	arena[8] = 1; /* the tick is the clock */
	arena[12] = 2;
	arena[16] = 7;
	/* Units of a second: threads hand over once in it. */
	arena[24 + 1] = 75;
	all(0);
	for (round = 0; round < 3; round++) {
		int refused = teeperf_attach(arena, LENGTH);
		check(refused == 0, "attaching");
		tick = round == 1 ? NULL : (volatile uint32_t *)(void *)(arena + TICK);
		for (i = 0; i < ROUNDS; i++)
			all(i);
		teeperf_detach();
		tick = NULL;
		gather();
	}
	/* Recording has ended: the calls stay for the next time, and the clock's time is nobody's. */
	arena[CONTROL] = STOPPED;
	arena[TICK + 2] += 9;
	check(teeperf_attach(arena, LENGTH) == 0, "attaching");
	arena[TICK + 2] += 9;
	all(1);
	teeperf_detach();
	gather();
	/* Another recording. */
	arena[CONTROL] = 0;
	arena[16] = 8;
	check(calls[0][12 + 1] == 1 + 3 * ROUNDS, "calls behind the end of recording");
	check(teeperf_attach(arena, LENGTH) == 0, "attaching");
	teeperf_detach();
	gather();
	for (i = 0; i < FUNCTIONS; i++) {
		uint64_t sum = 0;
		for (from = 0; from < FUNCTIONS + 2; from++)
			sum += calls[i][from];
		printf("%s %llu %llu\n", functions[i].name, (unsigned long long)truth[i], (unsigned long long)sum);
	}
	check(calls[6][9 + 1] == 2 * (2 + 3 * ROUNDS), "arcs of calls through pointers");
	check(calls[5][5 + 1] == 20 * (2 + 3 * ROUNDS), "arcs of a recursion");
	printf("time %llu %llu\n", (unsigned long long)moved, (unsigned long long)spans);
	printf("lost 0 %llu\n", (unsigned long long)lost);
	return 0;
}

#endif
