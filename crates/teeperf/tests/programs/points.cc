// What a program says of itself, besides its calls: scopes, marks, counters, notes.
#include "counted.h"
#include <stdexcept>
#include <teeperf.h>

NOINLINE static void work(void) { CALLED("work"); }

NOINLINE static void loads(int times) {
    CALLED("loads");
    TEEPERF_SCOPE("load: all of it");
    for (int i = 0; i < times; i++) {
        TEEPERF_BEGIN(part, "load a part");
        work();
        TEEPERF_END(part);
        TEEPERF_COUNTER("loaded", i - 2);
    }
    TEEPERF_COUNTER_REAL("share", 0.25);
    work();
}

NOINLINE static void throws(void) {
    CALLED("throws");
    TEEPERF_SCOPE("left by an exception");
    throw std::runtime_error("it");
}

int main() {
    CALLED("main");
    TEEPERF_MARK("begin");
    loads(5);
    try {
        throws();
    } catch (const std::runtime_error &) {
        TEEPERF_MARK("caught");
    }
    teeperf_note("by hand");
    {
        TEEPERF_SCOPE("behind");
        work();
    }
    counted_print();
    return 0;
}
