// Executes the program of its further arguments, as the first one says. It is built without hooks.
//   plainly        at once
//   orphan         without an environment, in a process whose parents have ended
//   root           as root, which this program is by its file's rights
//   nobody         as another user, where this one is root
//   files          with a limit of four descriptors
//   memory         with a limit of 6.5 MiB of memory
//   kills          under a filter of system calls that ends a process for `socket`
//   kills-behind   likewise, in a child that is forked under that filter
//   kills-clone    likewise, where the filter ends a process for `clone` as well
//   refuses        under a filter that refuses `keyctl` with an error
//   refuses-behind likewise, in a child that is forked under that filter
// Ends as the program does, with 77 where a right is missing, and with 9 where the program was killed.
#define _GNU_SOURCE
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static void forbid(long first, long second, unsigned answer) {
    struct sock_filter rules[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)first, 1, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)second, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, answer),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {sizeof rules / sizeof *rules, rules};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)) exit(77);
    if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program)) exit(77);
}

static int ending_of(pid_t child) {
    int status;
    if (waitpid(child, &status, 0) != child) return 9;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 9;
}

// Runs in a process whose parent ends a while after it was forked.
static void leave_parents(void) {
    int alive[2];
    if (pipe(alive)) exit(9);
    pid_t between = fork();
    if (between) {
        close(alive[1]);
        char byte;
        ending_of(between);
        // Nobody has the other end any more when the program has ended.
        exit(read(alive[0], &byte, 1) != 0);
    }
    if (fork()) {
        usleep(300000);
        _exit(0);
    }
    pid_t parent = getppid();
    while (getppid() == parent) usleep(1000);
}

int main(int argc, char **argv) {
    static char *none[] = {NULL};
    if (argc < 3) return 9;
    const char *how = argv[1];
    char **environment = environ;
    if (!strcmp(how, "orphan")) {
        leave_parents();
        environment = none;
    } else if (!strcmp(how, "root")) {
        if (setresgid(0, 0, 0) || setresuid(0, 0, 0)) return 77;
    } else if (!strcmp(how, "nobody")) {
        if (setresgid(65534, 65534, 65534) || setresuid(65534, 65534, 65534)) return 77;
    } else if (!strcmp(how, "files")) {
        struct rlimit four = {4, 4};
        if (setrlimit(RLIMIT_NOFILE, &four)) return 77;
    } else if (!strcmp(how, "memory")) {
        struct rlimit few = {26 << 18, 26 << 18}; /* it starts, and there is no room for what is recorded */
        if (setrlimit(RLIMIT_AS, &few)) return 77;
    } else if (!strncmp(how, "kills", 5)) {
        long other = strcmp(how, "kills-clone") ? SYS_socket : SYS_clone;
        forbid(SYS_socket, other, SECCOMP_RET_KILL_PROCESS);
    } else if (!strncmp(how, "refuses", 7)) {
        forbid(SYS_keyctl, SYS_keyctl, SECCOMP_RET_ERRNO | 1);
    }
    pid_t child = strstr(how, "behind") ? fork() : 0;
    if (child) return ending_of(child);
    execve(argv[2], argv + 2, environment);
    return 9;
}
