// Calls whose whole work is to wait for memory: each line is put out of the caches before.
#include "counted.h"

enum { LINE = 64, LINES = 4096 };
static char lines[LINE * LINES];

NOINLINE static int miss(const volatile char *at) {
    CALLED("miss");
    return *at;
}

UNHOOKED static void put_out(const char *at) {
    __asm__ volatile("clflush (%0)\n\tmfence" : : "r"(at) : "memory");
}

int main(int argc, char **argv) {
    CALLED("main");
    int sum = 0;
    for (long i = 0, calls = counted_argument(argc, argv, 1, 20000); i < calls; i++) {
        const char *at = lines + i * 7 % LINES * LINE;
        put_out(at);
        sum += miss(at);
    }
    counted_print();
    return sum;
}
