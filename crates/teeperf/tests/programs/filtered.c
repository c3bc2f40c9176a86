// As many threads as its first line says call all the time, until it reads another line. Each call of "work" calls
// "middle" twice, which calls "often" three times, "twice" twice and "always" once.
#include "counted.h"
#include <pthread.h>
#include <stdatomic.h>

static atomic_int ends;

NOINLINE static long often(long n) {
    CALLED("often");
    return n * 3;
}
NOINLINE static long twice(long n) {
    CALLED("twice");
    return often(n) + 1;
}
NOINLINE static long always(long n) {
    CALLED("always");
    return n + 2;
}
NOINLINE static long middle(long n) {
    CALLED("middle");
    return often(n) + twice(n) + always(n) + twice(n) + often(1);
}
NOINLINE static long work(long n) {
    CALLED("work");
    return middle(n) + middle(n + 1);
}

UNHOOKED static void *thread(void *argument) {
    long sum = (long)argument;
    while (!ends) {
        sum += work(sum & 7);
        // Of threads that call without a pause there are too many events for a test.
        if ((sum & 63) == 0) usleep(50);
    }
    return (void *)sum;
}

UNHOOKED int main(void) {
    int count;
    pthread_t threads[16];
    if (scanf("%d", &count) != 1 || count > 16) return 3;
    for (long i = 0; i < count; i++) pthread_create(&threads[i], NULL, thread, (void *)i);
    printf("done\n");
    fflush(stdout);
    char word[32];
    if (scanf("%31s", word) != 1) return 4;
    ends = 1;
    for (int i = 0; i < count; i++) pthread_join(threads[i], NULL);
    counted_print();
    return 0;
}
