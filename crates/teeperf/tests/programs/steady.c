// Calls, quietly, until it has made as many as it was told, and says where it has got to: a
// file whose name is the first argument is mapped, its first word counts the calls of `leaf`,
// the second becomes 1 when main is done, and who writes 1 into the third ends it.
// Second argument: rounds; third: microseconds of sleep after each thousand rounds; fourth:
// further threads that do the same and never end by themselves.
#include "counted.h"
#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>

static volatile long *progress;
static long rounds, pause_us, begun;

NOINLINE static void leaf(void) {
    CALLED("leaf");
    __atomic_fetch_add(&progress[0], 1, __ATOMIC_RELAXED);
}
NOINLINE static void work(void) {
    CALLED("work");
    leaf();
    leaf();
}
NOINLINE static void *endless(void *argument) {
    CALLED("endless");
    __atomic_fetch_add(&begun, 1, __ATOMIC_RELAXED);
    for (;;) work();
    return argument;
}

int main(int argc, char **argv) {
    CALLED("main");
    if (argc < 2) return 2;
    int file = open(argv[1], O_RDWR | O_CREAT, 0600);
    if (file < 0 || ftruncate(file, 4096)) return 3;
    progress = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (progress == MAP_FAILED) return 4;
    close(file);
    rounds = counted_argument(argc, argv, 2, 1000);
    pause_us = counted_argument(argc, argv, 3, 0);
    pthread_t thread;
    long threads = counted_argument(argc, argv, 4, 0);
    for (long i = 0; i < threads; i++)
        if (pthread_create(&thread, NULL, endless, NULL)) return 6;
    while (__atomic_load_n(&begun, __ATOMIC_RELAXED) < threads) usleep(100);
    for (long i = 0; i < rounds && !progress[2]; i++) {
        work();
        if (pause_us && i % 1000 == 999) usleep((unsigned)pause_us);
    }
    counted_print();
    progress[1] = 1;
    return 5;
}
