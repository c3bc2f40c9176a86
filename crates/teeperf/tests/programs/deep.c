// A million frames deep, on a thread whose stack is big enough, and back; a second time
// with the way back cut short by longjmp.
#define _GNU_SOURCE
#include "counted.h"
#include <pthread.h>
#include <setjmp.h>
#include <sys/mman.h>

static jmp_buf top;
static volatile long sink;

NOINLINE static long descends(long depth, int jumps) {
    CALLED("descends");
    if (depth == 0) {
        if (jumps) longjmp(top, 1);
        return 0;
    }
    long below = descends(depth - 1, jumps);
    return below + (sink & 1) + 1;
}
NOINLINE static void *runs(void *argument) {
    CALLED("runs");
    long depth = (long)argument;
    if (descends(depth, 0) != depth) abort();
    if (!setjmp(top)) descends(depth, 1);
    descends(10, 0);
    return NULL;
}

int main(int argc, char **argv) {
    CALLED("main");
    long depth = counted_argument(argc, argv, 1, 1000000);
    size_t size = (size_t)1 << 30;
    void *stack = mmap(NULL, size, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);
    if (stack == MAP_FAILED) return 3;
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstack(&attributes, stack, size);
    pthread_t thread;
    if (pthread_create(&thread, &attributes, runs, (void *)depth)) return 4;
    pthread_join(thread, NULL);
    counted_print();
    return 0;
}
