/* Functions that call themselves and one another. perf tells the truth.
 *
 * tree: two calls at each level, and a leaf; mutual: two functions by turns, down and up;
 * deep: 2,000 levels of very little each, and more at the bottom. */
#include "truth.h"

WORK(leaf, 12)

ALONE uint64_t tree(uint64_t x, unsigned levels)
{
	UNITS(x, 4)
	if (levels == 0)
		return leaf(x);
	x = tree(x, levels - 1);
	return tree(x, levels - 1) + 1;
}

ALONE uint64_t odd(uint64_t x, unsigned levels);

ALONE uint64_t even(uint64_t x, unsigned levels)
{
	UNITS(x, 10)
	return levels ? odd(x, levels - 1) + 1 : x;
}

ALONE uint64_t odd(uint64_t x, unsigned levels)
{
	UNITS(x, 15)
	x = levels ? even(x, levels - 1) : x;
	UNITS(x, 15)
	return x;
}

WORK(bottom, 3000)

ALONE uint64_t descend(uint64_t x, unsigned levels)
{
	UNITS(x, 2)
	return (levels ? descend(x, levels - 1) : bottom(x)) + 1;
}

OUTSIDE static void trees(unsigned rounds)
{
	while (rounds--) {
		sink = tree(sink, 14);
		jitter(20000);
	}
}

OUTSIDE static void mutual(unsigned rounds)
{
	for (unsigned i = 0; i < rounds * 100; i++) {
		sink = even(sink, 200);
		jitter(1000);
	}
}

OUTSIDE static void deep(unsigned rounds)
{
	for (unsigned i = 0; i < rounds * 100; i++) {
		sink = descend(sink, 2000);
		jitter(1000);
	}
}

SCENARIOS({"tree", trees}, {"mutual", mutual}, {"deep", deep})
