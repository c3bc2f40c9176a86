// A server's master gives something up, as the first argument says, and forks workers, each of which calls
// `serve` as often as the second argument says. Each process prints what it called itself.
//   user, euid        root, for good, or for now
//   network, process  what a namespace of its own takes away
//   files, memory     limits
//   socket, map       system calls that a filter (seccomp) refuses
//   ends              all but a few, for which a filter ends the process; the master works itself, without a fork
//   ends-ids          likewise, but for what fork needs: a worker must not ask for its own id
//   library           as "ends", by libseccomp's function, which another file defines
//   unseen            as "ends", by no function at all; the master sleeps a while
//   strict            read, write and exit alone
//   many              "socket", and more workers at once than there is memory for
//   empty             has a child execute this program ("work") without an environment
//   executed          "network", then executes this program ("work")
//   other-user        "user", then executes this program ("work")
//   work              a hundred calls
// Ends with 77 where a right for it is missing.
#define _GNU_SOURCE
#include "counted.h"
#include <errno.h>
#include <grp.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>

NOINLINE static long serve(long n) {
    CALLED("serve");
    return n + 1;
}
NOINLINE static long work(long times) {
    CALLED("work");
    long sum = 0;
    for (long i = 0; i < times; i++) sum += serve(i);
    return sum;
}

#define LOAD BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr))
#define IF(name, answer)                                                       \
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_##name, 0, 1), BPF_STMT(BPF_RET | BPF_K, answer)
#define PASSES SECCOMP_RET_ALLOW
#define FEW                                                                    \
    IF(read, PASSES), IF(write, PASSES), IF(exit, PASSES), IF(exit_group, PASSES), IF(brk, PASSES), \
        IF(rt_sigreturn, PASSES), IF(mmap, PASSES), IF(munmap, PASSES)

UNHOOKED static void by_filter(struct sock_filter *rules, size_t count) {
    struct sock_fprog program = {(unsigned short)count, rules};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)) exit(77);
#ifdef BY_NUMBER
    if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program)) exit(77);
#else
    if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program)) exit(77);
#endif
}
#define FILTER(...)                                                            \
    do {                                                                       \
        struct sock_filter rules[] = {LOAD, __VA_ARGS__};                      \
        by_filter(rules, sizeof rules / sizeof *rules);                        \
    } while (0)

// By an instruction of its own, which no wrapper sees.
UNHOOKED static void by_instruction(void) {
    struct sock_filter rules[] = {LOAD, FEW, IF(clock_nanosleep, PASSES), BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS)};
    struct sock_fprog program = {sizeof rules / sizeof *rules, rules};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)) exit(77);
    long result;
    __asm__ volatile("syscall"
                     : "=a"(result)
                     : "0"(SYS_seccomp), "D"(SECCOMP_SET_MODE_FILTER), "S"(0L), "d"(&program)
                     : "rcx", "r11", "memory");
    if (result) exit(77);
}
#ifdef LIBRARY
int seccomp_load(void *context);
#else
UNHOOKED static int seccomp_load(void *context) {
    by_instruction();
    return context != NULL;
}
#endif

UNHOOKED static void limit(int what, rlim_t to) {
    struct rlimit limits = {to, to};
    if (setrlimit(what, &limits)) exit(77);
}
UNHOOKED static void leave(int what) {
    if (unshare(what) && unshare(what | CLONE_NEWUSER)) exit(77);
}
UNHOOKED static void give_up(const char *what) {
    if (!strcmp(what, "user") || !strcmp(what, "other-user")) {
        if (setgroups(0, NULL) || setgid(65534) || setuid(65534)) exit(77);
    } else if (!strcmp(what, "euid")) {
        if (seteuid(65534)) exit(77);
    } else if (!strcmp(what, "network") || !strcmp(what, "executed")) {
        leave(CLONE_NEWNET);
    } else if (!strcmp(what, "process")) {
        leave(CLONE_NEWPID | CLONE_NEWNET);
    } else if (!strcmp(what, "files")) {
        limit(RLIMIT_NOFILE, 3);
    } else if (!strcmp(what, "memory")) {
        limit(RLIMIT_AS, 64 << 20);
    } else if (!strcmp(what, "socket") || !strcmp(what, "many")) {
        FILTER(IF(socket, SECCOMP_RET_ERRNO | EPERM), BPF_STMT(BPF_RET | BPF_K, PASSES));
    } else if (!strcmp(what, "map")) {
        FILTER(IF(mmap, SECCOMP_RET_ERRNO | EPERM), BPF_STMT(BPF_RET | BPF_K, PASSES));
    } else if (!strcmp(what, "ends")) {
        FILTER(FEW, BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS));
    } else if (!strcmp(what, "ends-ids")) {
        FILTER(FEW, IF(clone, PASSES), IF(clone3, PASSES), IF(wait4, PASSES), IF(set_robust_list, PASSES),
               IF(rseq, PASSES), IF(gettid, PASSES), IF(getrandom, PASSES),
               BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS));
    } else if (!strcmp(what, "library")) {
        if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || seccomp_load(NULL)) exit(77);
    } else if (!strcmp(what, "unseen")) {
        by_instruction();
        // Two looks of the recorder's.
        struct timespec pause = {2, 500000000};
        syscall(SYS_clock_nanosleep, 0, 0, &pause, NULL);
    } else if (!strcmp(what, "strict")) {
        if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT)) exit(77);
    }
}

// Prints in one piece: a strict filter leaves the heap as it is.
UNHOOKED static void print_and_end(void) {
    char text[200];
    long calls[2] = {0, 0};
    for (struct counted *cell = __start_counted; cell < __stop_counted; cell++) {
        if (!strcmp(cell->name, "serve")) calls[0] = cell->calls;
        if (!strcmp(cell->name, "work")) calls[1] = cell->calls;
    }
    int length = snprintf(text, sizeof text, "calls main 1\ncalls serve %ld\ncalls work %ld\n", calls[0], calls[1]);
    if (write(1, text, (size_t)length) != length) abort();
    syscall(SYS_exit, 0);
}

int main(int argc, char **argv) {
    CALLED("main");
    const char *what = argc > 1 ? argv[1] : "work";
    long times = counted_argument(argc, argv, 2, 100);
    work(10);
    if (!strcmp(what, "work")) {
        counted_print();
        return 0;
    }
    int is_alone = !strcmp(what, "ends") || !strcmp(what, "library") ||
                   !strcmp(what, "strict") || !strcmp(what, "unseen");
    give_up(what);
    if (is_alone) {
        work(times);
        print_and_end();
    }
    if (!strcmp(what, "executed") || !strcmp(what, "other-user") || !strcmp(what, "empty")) {
        static char *none[] = {NULL};
        counted_print();
        char *const arguments[] = {argv[0], (char *)"work", NULL};
        pid_t pid = strcmp(what, "empty") ? 0 : fork();
        if (pid) return waitpid(pid, NULL, 0) != pid;
        execve(argv[0], arguments, strcmp(what, "empty") ? environ : none);
        exit(9);
    }
    int workers = !strcmp(what, "many") ? 20 : 3;
    int together[2];
    if (!strcmp(what, "many") && pipe(together)) exit(9);
    for (int i = 0; i < workers; i++) {
        pid_t pid = fork();
        if (pid == 0) {
            counted_begin_anew();
            work(times);
            if (!strcmp(what, "many")) {
                char byte;
                close(together[1]);
                if (read(together[0], &byte, 1) < 0) abort();
            }
            counted_print();
            _exit(0);
        }
        // In a process namespace of its own only the first can have children.
        if (!strcmp(what, "process")) break;
        if (strcmp(what, "many") && waitpid(pid, NULL, 0) != pid) exit(9);
    }
    if (!strcmp(what, "many")) {
        usleep(300000);
        close(together[1]);
    }
    while (wait(NULL) > 0) {}
    counted_print();
    return 0;
}
