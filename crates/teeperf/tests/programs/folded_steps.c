// Recursion of three functions in random order, in so many threads one after the other; after one in so
// many instructions, at random, a handler that recurses as well. Paths are made before that, so that
// interrupted hooks find them, and take and give back what folding needs.
#include "counted.h"
#include <pthread.h>
#include <signal.h>

static volatile long sink;
static unsigned long one_in;
static unsigned order, steps;

NOCLONE static void recurse(int depth) {
    CALLED("recurse");
    if (depth) recurse(depth - 1);
    sink++;
}
NOCLONE static void handler(void) {
    CALLED("handler");
    recurse(2);
}
UNHOOKED static void on_step(int number) {
    (void)number;
    steps = steps * 1664525 + 1013904223;
    if ((steps >> 8) % one_in == 0) handler();
}

static void red(int depth), green(int depth), blue(int depth);
UNHOOKED static inline void any(int depth) {
    static void (*const all[])(int) = {red, green, blue};
    order = order * 1664525 + 1013904223;
    if (depth) all[(order >> 16) % 3](depth - 1);
    sink++;
}
NOCLONE static void red(int depth) {
    CALLED("red");
    any(depth);
}
NOCLONE static void green(int depth) {
    CALLED("green");
    any(depth);
}
NOCLONE static void blue(int depth) {
    CALLED("blue");
    any(depth);
}

UNHOOKED static void *thread(void *unused) {
    for (int i = 0; i < 300; i++) {
        red(3);
        green(3);
        blue(3);
    }
    handler();
    __asm__ volatile("sub $128, %%rsp; pushf; orl $0x100, (%%rsp); popf; add $128, %%rsp" ::: "memory", "cc");
    red(60);
    __asm__ volatile("sub $128, %%rsp; pushf; andl $~0x100, (%%rsp); popf; add $128, %%rsp" ::: "memory", "cc");
    return unused;
}

UNHOOKED int main(int argc, char **argv) {
    long threads = counted_argument(argc, argv, 1, 1);
    one_in = (unsigned long)counted_argument(argc, argv, 2, 64);
    signal(SIGTRAP, on_step);
    while (threads-- > 0) {
        pthread_t id;
        if (pthread_create(&id, NULL, thread, NULL) || pthread_join(id, NULL)) return 3;
    }
    counted_print();
    return 0;
}
