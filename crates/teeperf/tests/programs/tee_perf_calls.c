// A few calls for a log of tee_perf_log.c, counted as far as they are recorded. Argument:
//   threads    eight threads that are there at once make them
//   pauses     in the midst of them nothing is recorded, ten times
//   anything else, or nothing: one thread does
#include "counted.h"
#include <pthread.h>

UNHOOKED void tee_perf_switch(int on);

enum { THREADS = 8 };

static pthread_barrier_t all_there;
static volatile long sink;

NOINLINE static void leaf(void) {
    CALLED("leaf");
    sink++;
}
NOINLINE static long fibonacci(long n) {
    CALLED("fibonacci");
    return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2);
}
NOINLINE static void *works(void *argument) {
    CALLED("works");
    if (argument) pthread_barrier_wait(&all_there);
    for (int i = 0; i < 100; i++) leaf();
    sink += fibonacci(10);
    return argument;
}
// Called while nothing is recorded.
NOINLINE static void unseen(void) {
    for (int i = 0; i < 1000000; i++) sink++;
}
NOINLINE static void pauses(void) {
    CALLED("pauses");
    leaf();
    tee_perf_switch(0);
    unseen();
    tee_perf_switch(1);
    leaf();
}

int main(int argc, char **argv) {
    CALLED("main");
    if (argc > 1 && !strcmp(argv[1], "threads")) {
        pthread_t threads[THREADS];
        pthread_barrier_init(&all_there, NULL, THREADS);
        for (int t = 0; t < THREADS; t++) pthread_create(&threads[t], NULL, works, threads);
        for (int t = 0; t < THREADS; t++) pthread_join(threads[t], NULL);
    } else if (argc > 1 && !strcmp(argv[1], "pauses")) {
        for (int i = 0; i < 10; i++) pauses();
    } else {
        works(NULL);
    }
    counted_print();
}
