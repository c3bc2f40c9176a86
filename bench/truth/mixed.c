/* Calls of 1 ns to 1 ms, in batches that the thread's clock times, and one by one.
 *
 * even: each length has a like share; steep: the shortest have the least; fine: the same in
 * rounds of half a millisecond; rare: hundreds of thousands of calls of 1 ns for each of 1 ms;
 * single: short and long calls by turns, where perf tells the truth; tiny: calls of 1 ns with
 * their callers, where it does so too.
 *
 * Of a call of 1 ns the processor spends a good part on the call itself, in whichever of both
 * functions it is seen. The clock tells the truth of the two together. */
#include "truth.h"

WORK(call_1ns, 1)
WORK(call_3ns, 2)
WORK(call_10ns, 8)
WORK(call_100ns, 80)
WORK(call_1us, 800)
WORK(call_10us, 8000)
WORK(call_100us, 80000)
WORK(call_1ms, 800000)

static struct part parts[] = {
	{"call_3ns", call_3ns, 0},     {"call_10ns", call_10ns, 0}, {"call_100ns", call_100ns, 0},
	{"call_1us", call_1us, 0},     {"call_10us", call_10us, 0}, {"call_100us", call_100us, 0},
	{"call_1ms", call_1ms, 0},
};
enum { PARTS = sizeof parts / sizeof *parts };

OUTSIDE static void batches(unsigned rounds, const unsigned *times)
{
	uint64_t x = 1;
	for (unsigned round = 0; round < rounds; round++)
		for (unsigned i = 0; i < PARTS; i++)
			if (times[i])
				x = timed(&parts[i], times[i], x);
	sink = x;
	for (unsigned i = 0; i < PARTS; i++)
		if (times[i])
			tell(&parts[i], 1);
}

OUTSIDE static void even(unsigned rounds)
{
	batches(rounds, (const unsigned[PARTS]){400000, 100000, 10000, 1000, 100, 10, 1});
}

OUTSIDE static void steep(unsigned rounds)
{
	batches(rounds, (const unsigned[PARTS]){40000, 20000, 4000, 800, 160, 32, 6});
}

OUTSIDE static void fine(unsigned rounds)
{
	batches(rounds, (const unsigned[PARTS]){4000, 2000, 400, 80, 16, 2, 0});
}

#define EIGHT(code) code code code code code code code code

ALONE uint64_t many_1ns(uint64_t x)
{
	for (unsigned i = 0; i < 50000; i++) {
		EIGHT(x = call_1ns(x);)
	}
	return x;
}

OUTSIDE static void rare(unsigned rounds)
{
	struct part rarely[] = {{"many_1ns+call_1ns", many_1ns, 0}, {"call_1ms", call_1ms, 0}};
	uint64_t x = 1;
	while (rounds--)
		for (unsigned i = 0; i < 2; i++)
			x = timed(&rarely[i], 1, x);
	sink = x;
	tell(rarely, 2);
}

ALONE uint64_t one_1ns(uint64_t x) { return x * 0x9e3779b97f4a7c15u + 1; }
ALONE uint64_t next_1ns(uint64_t x) { return (x >> 7) + x; }

ALONE uint64_t by_turns(uint64_t x)
{
	for (unsigned i = 0; i < 10000; i++)
		x = next_1ns(one_1ns(x));
	return x;
}

OUTSIDE static void tiny(unsigned rounds)
{
	while (rounds--) {
		sink = many_1ns(sink);
		sink = repeat(by_turns, 10, sink);
		sink = repeat(call_10us, 10, sink);
		jitter(100000);
	}
}

OUTSIDE static void single(unsigned rounds)
{
	uint64_t x = 1, state = 88172645463325252u;
	for (unsigned long i = 0; i < rounds * 1000ul; i++) {
		uint64_t dice = chance(&state);
		x = call_1ns(x);
		x = call_10ns(x);
		x = call_10ns(x);
		x = call_100ns(x);
		x = call_10ns(x);
		if (dice % 8 == 0)
			x = call_1us(x);
		if (dice % 256 == 0)
			x = call_10us(x);
	}
	sink = x;
}

SCENARIOS({"even", even}, {"steep", steep}, {"fine", fine}, {"rare", rare},
          {"single", single}, {"tiny", tiny})
