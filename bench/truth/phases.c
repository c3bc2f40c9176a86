/* A run in phases of half a second each: one function, another one, both by turns, a third. The
 * thread's clock tells the truth. Rounds are the length of a phase in steps of some 5 ms. */
#include "truth.h"

WORK(load, 8000)
WORK(solve, 80)
WORK(store, 800000)

OUTSIDE static void phases(unsigned rounds)
{
	struct part parts[] = {{"load", load, 0}, {"solve", solve, 0}, {"store", store, 0}};
	uint64_t x = 1;
	for (unsigned i = 0; i < rounds; i++)
		x = timed(&parts[0], 500, x);
	for (unsigned i = 0; i < rounds; i++)
		x = timed(&parts[1], 50000, x);
	for (unsigned i = 0; i < rounds * 10; i++) {
		x = timed(&parts[0], 20, x);
		x = timed(&parts[1], 3000, x);
	}
	for (unsigned i = 0; i < rounds; i++)
		x = timed(&parts[2], 5, x);
	sink = x;
	tell(parts, 3);
}

SCENARIOS({"phases", phases})
