// Threads by the thousand. First argument:
//   blocked N   N threads make a few calls, then all sleep until the last has made its own
//   short N     N threads, each makes a few calls and ends, sixteen at a time
//   ways        threads that end by return, pthread_exit, cancellation while they sleep,
//               asynchronous cancellation while they compute, and one that was detached
//   outlive     main calls exit while threads still make calls
#include "counted.h"
#include <pthread.h>
#include <stdatomic.h>

static atomic_int ready, release_all;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t change = PTHREAD_COND_INITIALIZER;

NOINLINE static long leaf(long n) {
    CALLED("leaf");
    return n + 1;
}
NOINLINE static long few_calls(long n) {
    CALLED("few_calls");
    long sum = 0;
    for (long i = 0; i < 10; i++) sum += leaf(i + n);
    return sum;
}

NOINLINE static void waits(void) {
    CALLED("waits");
    pthread_mutex_lock(&lock);
    ready++;
    pthread_cond_broadcast(&change);
    while (!release_all) pthread_cond_wait(&change, &lock);
    pthread_mutex_unlock(&lock);
}
NOINLINE static void *blocked(void *argument) {
    CALLED("blocked");
    few_calls((long)argument);
    waits();
    leaf(0);
    return argument;
}
NOINLINE static void *short_lived(void *argument) {
    CALLED("short_lived");
    few_calls((long)argument);
    return argument;
}

UNHOOKED static void start(pthread_t *thread, void *(*run)(void *), long argument) {
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, 64 * 1024);
    if (pthread_create(thread, &attributes, run, (void *)argument)) {
        perror("pthread_create");
        exit(3);
    }
    pthread_attr_destroy(&attributes);
}

NOINLINE static void all_blocked(long count) {
    CALLED("all_blocked");
    pthread_t *threads = calloc((size_t)count, sizeof *threads);
    for (long i = 0; i < count; i++) start(&threads[i], blocked, i);
    pthread_mutex_lock(&lock);
    while (ready < count) pthread_cond_wait(&change, &lock);
    pthread_mutex_unlock(&lock);
    // All sleep. The program itself must get on: this takes many chunks.
    for (int i = 0; i < 100000; i++) few_calls(i);
    pthread_mutex_lock(&lock);
    release_all = 1;
    pthread_cond_broadcast(&change);
    pthread_mutex_unlock(&lock);
    for (long i = 0; i < count; i++) pthread_join(threads[i], NULL);
    free(threads);
}

NOINLINE static void all_short(long count) {
    CALLED("all_short");
    enum { AT_ONCE = 16 };
    pthread_t threads[AT_ONCE];
    for (long i = 0; i < count; i += AT_ONCE) {
        for (int t = 0; t < AT_ONCE; t++) start(&threads[t], short_lived, i + t);
        for (int t = 0; t < AT_ONCE; t++) pthread_join(threads[t], NULL);
    }
}

NOINLINE static void exits_deep(int depth) {
    CALLED("exits_deep");
    if (depth == 0) pthread_exit(NULL);
    exits_deep(depth - 1);
    leaf(1);
}
NOINLINE static void *by_exit(void *argument) {
    CALLED("by_exit");
    exits_deep(20);
    return argument;
}
NOINLINE static void cleaned_up(void *argument) {
    CALLED("cleaned_up");
    (void)argument;
    pthread_mutex_unlock(&lock);
    leaf(2);
}
NOINLINE static void *cancelled_asleep(void *argument) {
    CALLED("cancelled_asleep");
    pthread_mutex_lock(&lock);
    pthread_cleanup_push(cleaned_up, NULL);
    ready++;
    pthread_cond_broadcast(&change);
    for (;;) pthread_cond_wait(&change, &lock);
    pthread_cleanup_pop(1);
    return argument;
}
NOINLINE static void *cancelled_at_work(void *argument) {
    CALLED("cancelled_at_work");
    few_calls(7);
    pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, NULL);
    ready++;
    for (;;) __asm__ volatile("");
    return argument;
}
NOINLINE static void *detached(void *argument) {
    CALLED("detached");
    pthread_detach(pthread_self());
    few_calls(9);
    ready++;
    return argument;
}
UNHOOKED static void until_ready(int count) {
    while (ready < count) usleep(1000);
    ready = 0;
}
NOINLINE static void all_ways(void) {
    CALLED("all_ways");
    pthread_t thread;
    for (int i = 0; i < 20; i++) {
        start(&thread, by_exit, i);
        pthread_join(thread, NULL);
        start(&thread, cancelled_asleep, i);
        until_ready(1);
        pthread_cancel(thread);
        pthread_join(thread, NULL);
        start(&thread, cancelled_at_work, i);
        until_ready(1);
        pthread_cancel(thread);
        pthread_join(thread, NULL);
        start(&thread, detached, i);
        until_ready(1);
    }
    // Detached threads say that they are ready before they have returned.
    usleep(100000);
}

// Main ends while this still runs: what it called is known at one moment only, so it stops
// calling before main ends, and is inside two functions then.
NOINLINE static void stays(void) {
    CALLED("stays");
    few_calls(3);
    ready++;
    for (;;) pause();
}
NOINLINE static void *outliving(void *argument) {
    CALLED("outliving");
    stays();
    return argument;
}
NOINLINE static void outlive(long count) {
    CALLED("outlive");
    pthread_t thread;
    for (long i = 0; i < count; i++) start(&thread, outliving, i);
    until_ready((int)count);
}

int main(int argc, char **argv) {
    CALLED("main");
    const char *how = argc > 1 ? argv[1] : "blocked";
    long count = counted_argument(argc, argv, 2, 10);
    if (!strcmp(how, "blocked")) all_blocked(count);
    else if (!strcmp(how, "short")) all_short(count);
    else if (!strcmp(how, "ways")) all_ways();
    else outlive(count);
    counted_print();
    return 0;
}
