// Calls whose lengths it knows: each spins for as long as it says, by the system's clock, and so takes that long at
// least. Some end in other ways than by returning, and a signal handler comes in between. Where there is something to
// read it does that instead, as phases.c does: "spins 100" spins so many times, "end 7" ends.
#include "counted.h"
#include <setjmp.h>
#include <signal.h>
#include <sys/time.h>
#include <time.h>

UNHOOKED static long now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * 1000000000L + time.tv_nsec;
}

UNHOOKED static void spin(long ns) {
    for (long begin = now(); now() - begin < ns;) {}
}

NOINLINE static void plain(void) { CALLED("plain"); }

NOINLINE static void spins(void) {
    CALLED("spins");
    for (int i = 0; i < 10; i++) plain();
    spin(20000);
}

NOINLINE static void recurs(int levels) {
    CALLED("recurs");
    spin(10000);
    if (levels > 1) recurs(levels - 1);
}

static jmp_buf place;
NOINLINE static void leaves(int jumps) {
    CALLED("leaves");
    spin(5000);
    if (jumps) longjmp(place, 1);
}

NOINLINE static void handles(int signal) {
    CALLED("handles");
    (void)signal;
    spin(1000);
}

// Takes as long as many signals take to come.
NOINLINE static void is_interrupted(void) {
    CALLED("is_interrupted");
    spin(50000000);
}

UNHOOKED static void does_all(void) {
    for (volatile int i = 0; i < 200; i++) {
        spins();
        if (i % 10 == 0) recurs(5);
        if (!setjmp(place)) leaves(i % 4 == 0);
    }
    struct itimerval often = {{0, 500}, {0, 500}}, never = {{0, 0}, {0, 0}};
    signal(SIGALRM, handles);
    setitimer(ITIMER_REAL, &often, NULL);
    for (int i = 0; i < 3; i++) is_interrupted();
    setitimer(ITIMER_REAL, &never, NULL);
}

UNHOOKED static int reads(void) {
    char word[32];
    int times, has_read = 0;
    while (scanf("%31s %d", word, &times) == 2) {
        has_read = 1;
        if (!strcmp(word, "end")) return times;
        for (int i = 0; i < times; i++) {
            if (!strcmp(word, "spins")) spins();
            if (!strcmp(word, "recurs")) recurs(3);
        }
        printf("done\n");
        fflush(stdout);
    }
    if (!has_read) does_all();
    return has_read;
}

int main(void) {
    CALLED("main");
    int status = reads();
    counted_print();
    return status;
}
