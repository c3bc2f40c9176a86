// Makes code in memory, as a just-in-time compiler does, and tells perf of it. `jitted MILLISECONDS [fork]`
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

// push %rbp; mov %rsp,%rbp; dec %rdi; jnz to that; pop %rbp; ret
static const unsigned char spins[] = {0x55, 0x48, 0x89, 0xe5, 0x48, 0xff, 0xcf, 0x75, 0xfb, 0x5d, 0xc3};
// push %rbp; mov %rsp,%rbp; call *%rsi; pop %rbp; ret
static const unsigned char calls[] = {0x55, 0x48, 0x89, 0xe5, 0xff, 0xd6, 0x5d, 0xc3};

typedef void spin(long turns);
typedef void call(long turns, spin *what);

static FILE *map;

static void *make(char *at, const unsigned char *code, size_t size, const char *name) {
    memcpy(at, code, size);
    fprintf(map, "%lx %zx %s\n", (unsigned long)at, size, name);
    return at;
}

static char *page(void) {
    return mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

static void made(char *page) {
    fflush(map);
    mprotect(page, 4096, PROT_READ | PROT_EXEC);
}

static long used_ms(void) {
    struct timespec time;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
    return time.tv_sec * 1000 + time.tv_nsec / 1000000;
}

static call *outer;
static spin *large, *small, *later;

// Three of large to one of small.
__attribute__((noinline)) static void work(long milliseconds) {
    for (long end = used_ms() + milliseconds; used_ms() < end;) {
        outer(300000, large);
        outer(100000, small);
    }
}

__attribute__((noinline)) static void work_later(long milliseconds) {
    for (long end = used_ms() + milliseconds; used_ms() < end;)
        later(100000);
}

int main(int count, char **words) {
    long milliseconds = atol(words[1]);
    char name[64];
    snprintf(name, sizeof name, "/tmp/perf-%d.map", getpid());
    printf("map %s\n", name);
    fflush(stdout);
    map = fopen(name, "w");
    char *first = page();
    // What was there before, of all of the page.
    fprintf(map, "%lx 1000 stale\n", (unsigned long)first);
    outer = make(first, calls, sizeof calls, "JS:*outer a.js:1:2");
    large = make(first + 256, spins, sizeof spins, "Large;::spin");
    small = make(first + 512, spins, sizeof spins, "small");
    made(first);
    if (count > 2 && !fork()) {
        work(milliseconds);
        _exit(0);
    }
    work(milliseconds);
    char *second = page();
    later = make(second, spins, sizeof spins, "later");
    made(second);
    work_later(milliseconds / 2);
    while (wait(0) > 0) {
    }
    return 0;
}
