/* Who calls whom, in all the ways that a call graph has: a cycle, recursion, calls through pointers,
 * two functions of one name, and work that takes three times as long as other work.
 *
 *   graph ROUNDS    does all of it so often
 */
#include "graph.h"
#include <stdlib.h>

/* How much work; with 1, a thousand rounds take some tenths of a second. */
#ifndef WORK
#define WORK 1
#endif

volatile unsigned long sink;

KEPT static void spin(int n) { for (int i = 0; i < n; i++) sink = sink * 3 + i; }
/* Each link waits for the one before, so that three times as many take three times as long. */
#define CHAIN(links) \
    unsigned long value = sink; \
    for (int i = 0; i < (links); i++) { \
        value *= 2891336453u; \
        __asm__ volatile("" : "+r"(value)); \
    } \
    sink = value
KEPT void heavy(void) { CHAIN(90000 * WORK); }
KEPT void light(void) { CHAIN(30000 * WORK); }
KEPT static int step(int n) { spin(10); return n + 1; }
KEPT int odd(int n);
KEPT int even(int n) { return n == 0 ? 1 : odd(n - 1) + 0 * step(n); }
KEPT int odd(int n) { return n == 0 ? 0 : even(n - 1) + 0 * step(n); }
KEPT int product(int n) { return n < 2 ? 1 : n * product(n - 1); }
KEPT int twice(int n) { spin(1); return 2 * n; }
KEPT int thrice(int n) { spin(2); return 3 * n; }

int main(int argc, char **argv) {
    int rounds = argc > 1 ? atoi(argv[1]) : 1, sum = 0;
    int (*const by_pointer[])(int) = {twice, thrice, step};
    for (int i = 0; i < rounds; i++) {
        heavy();
        light();
        sum += even(7) + product(5) + by_pointer[i % 3](i) + other(i);
    }
#ifdef WITH_LIBRARY
    for (int i = 0; i < 5; i++) sum += packed(i, twice);
#endif
    return sum == 42;
}
