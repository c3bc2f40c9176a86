// Ends by force after an exact number of calls, in the middle of a chunk and ten frames
// deep. Argument: kill, segv, abort, exit (_exit), quick (quick_exit), trap, syscall
// (exit_group by hand); second: how many rounds before.
#define _GNU_SOURCE
#include "counted.h"
#include <signal.h>
#include <sys/syscall.h>

static const char *how;

NOINLINE static long leaf(long n) {
    CALLED("leaf");
    return n ^ 5;
}
NOINLINE static long work(long n) {
    CALLED("work");
    return leaf(n) + leaf(n + 1);
}
NOINLINE static void ends(int depth) {
    CALLED("ends");
    leaf(depth);
    if (depth) {
        ends(depth - 1);
        leaf(1);
        return;
    }
    counted_print();
    if (!strcmp(how, "kill")) kill(getpid(), SIGKILL);
    else if (!strcmp(how, "segv")) *(volatile int *)16 = 1;
    else if (!strcmp(how, "abort")) abort();
    else if (!strcmp(how, "exit")) _exit(7);
    else if (!strcmp(how, "quick")) quick_exit(7);
    else if (!strcmp(how, "trap")) __builtin_trap();
    else syscall(SYS_exit_group, 7);
}

int main(int argc, char **argv) {
    CALLED("main");
    how = argc > 1 ? argv[1] : "kill";
    long rounds = counted_argument(argc, argv, 2, 1000), sum = 0;
    for (long i = 0; i < rounds; i++) sum += work(i);
    ends(9);
    return (int)sum;
}
