// Calls of two functions: one takes thirty milliseconds the first time and next to nothing the thousand times
// after that, the other the last time of all. Both call another one without end while they take their time.
#include "counted.h"
#include <time.h>

static volatile long sink;

NOINLINE static void step(void) {
    CALLED("step");
    sink++;
}
UNHOOKED static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}
UNHOOKED static inline void take(double seconds) {
    double end = seconds > 0 ? now() + seconds : 0;
    do step();
    while (seconds > 0 && now() < end);
}
NOINLINE static void long_first(double seconds) {
    CALLED("long_first");
    take(seconds);
}
NOINLINE static void long_last(double seconds) {
    CALLED("long_last");
    take(seconds);
}

int main(void) {
    CALLED("main");
    long_first(0.03);
    for (int i = 0; i < 1000; i++) {
        long_first(0);
        long_last(0);
    }
    long_last(0.03);
    counted_print();
    return 0;
}
