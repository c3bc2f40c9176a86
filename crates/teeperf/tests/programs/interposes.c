// Its own malloc, hooked like everything else: a hook that allocates, or that takes a lock
// of the allocator, never comes back. Also its own memcpy, memset and write, which a runtime
// must not lean on. Built with -fno-builtin: the compiler knows no malloc but the real one.
#define _GNU_SOURCE
#include "counted.h"
#include <pthread.h>
#include <stdint.h>
#include <sys/syscall.h>

static char heap[64 << 20];
static size_t heap_used;
static volatile long sink;

NOINLINE static void *from_heap(size_t size) {
    CALLED("from_heap");
    size_t at = __atomic_fetch_add(&heap_used, (size + 31) & ~(size_t)15, __ATOMIC_RELAXED);
    if (at + size + 32 > sizeof heap) __builtin_trap();
    char *block = heap + ((at + 31) & ~(size_t)15);
    ((size_t *)block)[-1] = size;
    return block;
}
void *malloc(size_t size) {
    CALLED("malloc");
    return from_heap(size);
}
void free(void *block) {
    CALLED("free");
    (void)block;
}
void *calloc(size_t count, size_t size) {
    CALLED("calloc");
    return from_heap(count * size);
}
void *realloc(void *old, size_t size) {
    CALLED("realloc");
    char *block = from_heap(size);
    size_t before = old ? ((size_t *)old)[-1] : 0;
    for (size_t i = 0; i < before && i < size; i++) block[i] = ((char *)old)[i];
    return block;
}
void *memset(void *to, int value, size_t size) {
    CALLED("memset");
    for (volatile char *at = to; size--; at++) *at = (char)value;
    return to;
}
void *memcpy(void *to, const void *from, size_t size) {
    CALLED("memcpy");
    volatile char *out = to;
    for (size_t i = 0; i < size; i++) out[i] = ((const char *)from)[i];
    return to;
}
ssize_t write(int file, const void *bytes, size_t size) {
    CALLED("write");
    return syscall(SYS_write, file, bytes, size);
}

NOINLINE static void allocates(long n) {
    CALLED("allocates");
    char *block = malloc((size_t)n + 1);
    memset(block, 1, (size_t)n);
    char *copy = realloc(block, (size_t)n + 2);
    sink += copy[0];
    free(copy);
}
NOINLINE static void *in_a_thread(void *argument) {
    CALLED("in_a_thread");
    for (int i = 1; i < 200; i++) allocates(i);
    return argument;
}

// What the loader and the C library called before main stands in lines of its own, "before
// NAME N": nobody can record what comes before the runtime's start. All counts are printed
// from here, so that printing is not counted.
UNHOOKED static size_t all_counts(const char *kind, char *text, size_t room) {
    size_t used = 0;
    for (struct counted *cell = __start_counted; cell < __stop_counted; cell++)
        if (cell->calls)
            used += (size_t)snprintf(text + used, room - used, "%s %s %ld\n", kind, cell->name, cell->calls);
    return used;
}

int main(void) {
    static char before[4096], after[4096];
    size_t before_used = all_counts("before", before, sizeof before);
    counted_begin_anew();
    CALLED("main");
    for (long i = 1; i < 2000; i++) allocates(i % 50 + 1);
    pthread_t threads[4];
    for (int i = 0; i < 4; i++) pthread_create(&threads[i], NULL, in_a_thread, NULL);
    for (int i = 0; i < 4; i++) pthread_join(threads[i], NULL);
    size_t after_used = all_counts("calls", after, sizeof after);
    syscall(SYS_write, 1, before, before_used);
    syscall(SYS_write, 1, after, after_used);
    _exit(0);
}
