// Calls `work` a hundred times, and stays for as many milliseconds as the first argument says.
#include "counted.h"

NOINLINE static long work(long n) {
    CALLED("work");
    return n + 1;
}

int main(int argc, char **argv) {
    CALLED("main");
    long sum = 0;
    for (long i = 0; i < 100; i++) sum += work(i);
    usleep((useconds_t)(1000 * counted_argument(argc, argv, 1, 0)));
    counted_print();
    return sum != 5050;
}
