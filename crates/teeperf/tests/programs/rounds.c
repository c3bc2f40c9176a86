// Recursion through three functions, a hundred thousand deep, called from two places; and one through
// a function that calls itself as well. Argument: depth.
#include "counted.h"

static volatile long sink;

NOINLINE static void clubs(long depth);
NOINLINE static void hearts(long depth) {
    CALLED("hearts");
    if (depth > 0) clubs(depth - 1);
    sink++;
}
NOINLINE static void spades(long depth) {
    CALLED("spades");
    if (depth > 0) hearts(depth - 1);
    sink++;
}
NOINLINE static void clubs(long depth) {
    CALLED("clubs");
    if (depth > 0) spades(depth - 1);
    sink++;
}
NOINLINE static void knocks(long depth) {
    CALLED("knocks");
    if (depth % 3) knocks(depth - 1);
    else if (depth > 0) hearts(depth - 1);
    sink++;
}
NOINLINE static void deals(long depth) {
    CALLED("deals");
    knocks(30);
    clubs(depth);
    knocks(31);
}

int main(int argc, char **argv) {
    CALLED("main");
    long depth = counted_argument(argc, argv, 1, 100000);
    for (int i = 0; i < 5; i++) deals(depth);
    spades(depth);
    counted_print();
    return 0;
}
