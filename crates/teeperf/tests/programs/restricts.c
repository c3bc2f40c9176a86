// Works, restricts its system calls, and works five times as long. A second thread, if there is to be one, works
// all the while. The first argument says how:
//   ends      a filter ends the process for all but a few calls
//   refuses   a filter refuses clock_gettime with an error
//   strict    read, write and exit alone
//   library   as "ends", by libseccomp's function, which another file defines
// Prints the CPU time of the first part, nanoseconds. Ends with 77 where a right for it is missing.
#define _GNU_SOURCE
#include "cpu_time.h"
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#define UNHOOKED __attribute__((no_instrument_function))
#define NOINLINE __attribute__((noinline))

static long rounds;
static int ends[2];
static volatile long is_over;

NOINLINE static void step(void) {
    // Takes the same time each time, as memory does not.
    unsigned long product = 3;
    for (int i = 0; i < 20000; i++) __asm__ volatile("imul %0, %0" : "+r"(product));
}
NOINLINE static void before(void) {
    long start = cpu_ns();
    while (cpu_ns() - start < 100000000) {
        step();
        rounds++;
    }
}
NOINLINE static void after(void) {
    for (long i = 0; i < 5 * rounds; i++) step();
}
NOINLINE static void beside(void) {
    while (!is_over) step();
}
UNHOOKED static void *thread(void *none) {
    beside();
    char byte;
    return read(ends[0], &byte, 1) ? none : NULL;
}

int seccomp_load(void *context);
#ifndef LIBRARY
UNHOOKED int seccomp_load(void *context) { return context == NULL; }
#endif

UNHOOKED static void filter(int ends) {
#define IF(name, answer) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_##name, 0, 1), BPF_STMT(BPF_RET | BPF_K, answer)
    struct sock_filter rules[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        IF(read, SECCOMP_RET_ALLOW), IF(write, SECCOMP_RET_ALLOW), IF(exit, SECCOMP_RET_ALLOW),
        IF(exit_group, SECCOMP_RET_ALLOW), IF(rt_sigreturn, SECCOMP_RET_ALLOW),
        IF(clock_gettime, ends ? SECCOMP_RET_KILL_PROCESS : SECCOMP_RET_ERRNO | EPERM),
        BPF_STMT(BPF_RET | BPF_K, ends ? SECCOMP_RET_KILL_PROCESS : SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {sizeof rules / sizeof *rules, rules};
    if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program)) exit(77);
}

int main(int argc, char **argv) {
    const char *how = argc > 1 ? argv[1] : "ends";
    pthread_t other;
    if (argc > 2 && (pipe(ends) || pthread_create(&other, NULL, thread, NULL))) exit(77);
    long start = cpu_ns();
    before();
    long took = cpu_ns() - start;
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)) exit(77);
    if (!strcmp(how, "strict")) {
        if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT)) exit(77);
    } else if (!strcmp(how, "library")) {
        if (seccomp_load(NULL)) exit(77);
    } else {
        filter(!strcmp(how, "ends"));
    }
    after();
    is_over = 1;
    char text[40];
    int length = snprintf(text, sizeof text, "%ld\n", took);
    if (write(1, text, (size_t)length) != length) abort();
    syscall(strcmp(how, "strict") ? SYS_exit_group : SYS_exit, 0);
}
