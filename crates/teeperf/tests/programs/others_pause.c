// One thread pauses recording and resumes it; another makes ten calls of one function before, ten
// meanwhile and ten behind, as many rounds as the first argument says.
#include "counted.h"
#include <pthread.h>
#include <sched.h>
#include <teeperf.h>

NOINLINE static void work(void) { CALLED("work"); }

static int step;

UNHOOKED static void wait_for(int wanted) {
    while (__atomic_load_n(&step, __ATOMIC_ACQUIRE) != wanted) sched_yield();
}
UNHOOKED static void next(void) { __atomic_fetch_add(&step, 1, __ATOMIC_ACQ_REL); }

UNHOOKED static void *calls(void *rounds) {
    for (int i = 0; i < 3 * (int)(long)rounds; i++) {
        wait_for(2 * i + 1);
        for (int call = 0; call < 10; call++) work();
        next();
    }
    return NULL;
}

int main(int argc, char **argv) {
    CALLED("main");
    long rounds = counted_argument(argc, argv, 1, 1);
    pthread_t thread;
    if (pthread_create(&thread, NULL, calls, (void *)rounds)) return 3;
    for (int i = 0; i < 3 * rounds; i++) {
        wait_for(2 * i);
        if (i % 3 == 1) teeperf_pause();
        if (i % 3 == 2) teeperf_resume();
        next();
    }
    pthread_join(thread, NULL);
    counted_print();
    return 0;
}
