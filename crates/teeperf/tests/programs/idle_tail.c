/* Works for some milliseconds, then waits for most of the time until its end. */
#include <unistd.h>

unsigned __attribute__((noinline)) work(unsigned x) {
    for (int i = 0; i < 40000000; i++) x = x * 1664525 + 1013904223;
    return x;
}

int main(void) {
    unsigned x = work(1);
    usleep(500 * 1000);
    return x == 42;
}
