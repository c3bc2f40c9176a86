// A program that changes the world it runs in. First argument:
//   name      another name for itself and its threads, in prctl and in argv
//   close     every descriptor closed, and the lowest ones opened again for its own use
//   seccomp   after start only read, write, exit and what a sleeping thread needs (strict filter)
//   user      gives up root, and the right to be inspected
//   limits    no more memory, no more descriptors, no core
//   root      a chroot into an empty directory (second argument)
// After the change it calls through many chunks, and looks that nobody has kept a descriptor.
#define _GNU_SOURCE
#include "counted.h"
#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>

static volatile long sink;

NOINLINE static long leaf(long n) {
    CALLED("leaf");
    return n + 1;
}
NOINLINE static long work(long n) {
    CALLED("work");
    long sum = 0;
    for (long i = 0; i < n; i++) sum += leaf(i);
    return sum;
}

NOINLINE static void change_name(char **argv) {
    CALLED("change_name");
    prctl(PR_SET_NAME, "another name \xff");
    memset(argv[0], 'x', strlen(argv[0]));
}
NOINLINE static void close_all(void) {
    CALLED("close_all");
    int out = fcntl(1, F_DUPFD, 1500);
    for (int i = 0; i < 1024; i++) close(i);
    // What the program opens now has the numbers that somebody else may have had.
    for (int i = 0; i < 16; i++)
        if (open("/dev/null", O_RDWR) != i) abort();
    work(100000);
    for (int i = 0; i < 16; i++)
        if (fcntl(i, F_GETFD) < 0) abort();
    dup2(out, 1);
    close(out);
}
// Whatever is not on the list kills, so that a system call made by a hook is seen.
NOINLINE static void filter_calls(void) {
    CALLED("filter_calls");
#define ALLOWED(name) \
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_##name, 0, 1), BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)
    struct sock_filter rules[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        ALLOWED(read), ALLOWED(write), ALLOWED(exit), ALLOWED(exit_group), ALLOWED(rt_sigreturn),
        ALLOWED(brk), ALLOWED(futex), ALLOWED(munmap),
        // What is refused, not killed, is how a sandbox says no.
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
    };
    struct sock_fprog program = {sizeof rules / sizeof *rules, rules};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program))
        exit(77);
}
NOINLINE static void give_up(void) {
    CALLED("give_up");
    if (setgid(65534) || setuid(65534)) exit(77);
    prctl(PR_SET_DUMPABLE, 0);
}
NOINLINE static void limit(void) {
    CALLED("limit");
    struct rlimit none = {3, 3}, memory = {256 << 20, 256 << 20}, small = {0, 0};
    setrlimit(RLIMIT_NOFILE, &none);
    setrlimit(RLIMIT_AS, &memory);
    setrlimit(RLIMIT_CORE, &small);
}
NOINLINE static void change_root(const char *path) {
    CALLED("change_root");
    if (chroot(path) || chdir("/")) exit(77);
}

// What came with exec is not closed on exec, and the program itself opens nothing that is.
NOINLINE static int is_kept(int descriptor) {
    CALLED("is_kept");
    int flags = fcntl(descriptor, F_GETFD);
    return flags >= 0 && flags & FD_CLOEXEC;
}

int main(int argc, char **argv) {
    CALLED("main");
    const char *how = argc > 1 ? argv[1] : "name";
    work(10);
    if (!strcmp(how, "name")) change_name(argv);
    else if (!strcmp(how, "close")) close_all();
    else if (!strcmp(how, "seccomp")) filter_calls();
    else if (!strcmp(how, "user")) give_up();
    else if (!strcmp(how, "limits")) limit();
    else if (!strcmp(how, "root") && argc > 2) change_root(argv[2]);
    for (int i = 0; i < 2000; i++) sink += work(1000);
    for (int i = 0; i < 1024; i++)
        if (is_kept(i)) return 9;
    counted_print();
    return 0;
}
