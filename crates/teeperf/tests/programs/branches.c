// Four functions call each other by chance: `branches WALKS` has about as many call paths as it
// walks, each twelve calls deep.
#include <stdlib.h>

static unsigned long state = 1;
static void step(int depth);

#define BRANCH(name) \
    __attribute__((noinline)) static void name(int depth) { \
        if (depth) step(depth - 1); \
        __asm__ volatile(""); \
    }
BRANCH(north)
BRANCH(east)
BRANCH(south)
BRANCH(west)

__attribute__((always_inline)) static inline void step(int depth) {
    state = state * 6364136223846793005ul + 1442695040888963407ul;
    switch (state >> 62) {
    case 0: north(depth); break;
    case 1: east(depth); break;
    case 2: south(depth); break;
    default: west(depth);
    }
    __asm__ volatile("");
}

int main(int argc, char **argv) {
    for (long walks = argc > 1 ? atol(argv[1]) : 1000; walks; walks--) step(11);
    return 0;
}
