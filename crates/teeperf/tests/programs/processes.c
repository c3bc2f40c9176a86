// Every way to get another process. First argument:
//   fork        children that work and exit, one that forks again, one that _exits
//   threads     fork while eight other threads make calls without end
//   together    children whose four threads make their first calls at once
//   vfork-exec  vfork, then exec of this program ("work")
//   vfork-exit  vfork, calls in the child, then _exit
//   spawn       posix_spawn and system() of this program ("work")
//   clone       a raw clone system call as fork; clone with a stack of its own; with shared memory
//   exec        work, then exec of this program ("work"); the process id stays
//   unhooked    exec of /bin/echo, which has no hooks
//   daemon      forks twice, closes every descriptor, setsid, works, writes its counts to
//               the file named by the second argument
//   left        forks twice; the grandchild, alone, sleeps before its first call, works, prints
//   left-exec   as "left", but it executes a shell that waits for the file named by the second argument
//   work        a hundred calls of leaf
// Each process prints what it called itself.
#define _GNU_SOURCE
#include "counted.h"
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>

extern char **environ;
static const char *self;

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

UNHOOKED static void wait_for(pid_t child, int status) {
    int seen;
    pid_t ended;
    do ended = waitpid(child, &seen, 0);
    while (ended < 0 && errno == EINTR);
    if (ended != child || !WIFEXITED(seen) || WEXITSTATUS(seen) != status) {
        fprintf(stderr, "child %d ended as %x\n", (int)child, seen);
        exit(9);
    }
}

NOINLINE static void child(int number) {
    CALLED("child");
    work(10 + number);
}
NOINLINE static void grandchild(void) {
    CALLED("grandchild");
    work(5);
}
NOINLINE static void forks(void) {
    CALLED("forks");
    for (int i = 0; i < 8; i++) {
        work(3);
        pid_t pid = fork();
        if (pid == 0) {
            counted_begin_anew();
            child(i);
            if (i == 4) {
                pid_t below = fork();
                if (below == 0) {
                    counted_begin_anew();
                    grandchild();
                    counted_print();
                    exit(3);
                }
                wait_for(below, 3);
            }
            counted_print();
            if (i % 2) _exit(i);
            exit(i);
        }
        wait_for(pid, i);
        work(4);
    }
}

static atomic_int stop_threads, started;
NOINLINE static void *busy(void *argument) {
    CALLED("busy");
    started++;
    while (!stop_threads) work(100);
    return argument;
}
NOINLINE static void forks_with_threads(void) {
    CALLED("forks_with_threads");
    pthread_t threads[8];
    for (int i = 0; i < 8; i++) pthread_create(&threads[i], NULL, busy, NULL);
    while (started < 8) usleep(100);
    for (int i = 0; i < 30; i++) {
        pid_t pid = fork();
        if (pid == 0) {
            counted_begin_anew();
            child(i);
            counted_print();
            _exit(2);
        }
        wait_for(pid, 2);
    }
    stop_threads = 1;
    for (int i = 0; i < 8; i++) pthread_join(threads[i], NULL);
}

static pthread_barrier_t together;
NOINLINE static void calls_at_once(long n) {
    CALLED("calls_at_once");
    work(n);
}
UNHOOKED static void *one_of_four(void *argument) {
    pthread_barrier_wait(&together);
    calls_at_once((long)argument);
    return NULL;
}
NOINLINE static void forks_for_threads(void) {
    CALLED("forks_for_threads");
    for (int i = 0; i < 40; i++) {
        pid_t pid = fork();
        if (pid == 0) {
            counted_begin_anew();
            pthread_t threads[4];
            pthread_barrier_init(&together, NULL, 4);
            for (long t = 0; t < 4; t++) pthread_create(&threads[t], NULL, one_of_four, (void *)(300 + t));
            for (int t = 0; t < 4; t++) pthread_join(threads[t], NULL);
            counted_print();
            _exit(2);
        }
        wait_for(pid, 2);
    }
}

// The functions between vfork and its end run in the parent's memory and on its stack. The
// child ends inside of this one, so that no hook sees it left.
NOINLINE static void in_vfork(int n, int with_exec) {
    CALLED("in_vfork");
    work(n);
    if (with_exec) execl(self, self, "work", (char *)NULL);
    _exit(with_exec ? 99 : 4);
}
NOINLINE static void vforks(int with_exec) {
    CALLED("vforks");
    for (volatile int i = 0; i < 10; i++) {
        work(2);
        pid_t pid = vfork();
        if (pid == 0) in_vfork(i, with_exec);
        wait_for(pid, with_exec ? 0 : 4);
        work(1);
    }
}

NOINLINE static void spawns(void) {
    CALLED("spawns");
    char *arguments[] = {(char *)self, (char *)"work", NULL};
    pid_t pid;
    work(2);
    if (posix_spawn(&pid, self, NULL, NULL, arguments, environ)) exit(9);
    wait_for(pid, 0);
    work(3);
    char command[4200];
    snprintf(command, sizeof command, "'%s' work", self);
    if (system(command)) exit(9);
    work(4);
}

NOINLINE static int on_other_stack(void *argument) {
    CALLED("on_other_stack");
    counted_begin_anew();
    CALLED("on_other_stack");
    work(6);
    (void)argument;
    counted_print();
    _exit(8);
}
// Shares memory and thread-local storage with its parent, which sleeps: vfork by hand.
NOINLINE static int in_shared_memory(void *argument) {
    CALLED("in_shared_memory");
    work((long)argument);
    _exit(8);
}
NOINLINE static void clones(void) {
    CALLED("clones");
    for (int i = 0; i < 5; i++) {
        long pid = syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, NULL);
        if (pid == 0) {
            counted_begin_anew();
            child(i);
            counted_print();
            _exit(6);
        }
        wait_for((pid_t)pid, 6);
        work(1);
    }
    char *stack = mmap(NULL, 1 << 18, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    int pid = clone(on_other_stack, stack + (1 << 18), SIGCHLD, NULL);
    wait_for(pid, 8);
    work(2);
    for (long i = 0; i < 5; i++) {
        pid = clone(in_shared_memory, stack + (1 << 18), CLONE_VM | CLONE_VFORK | SIGCHLD, (void *)i);
        wait_for(pid, 8);
        work(2);
    }
}

NOINLINE static void execs(const char *program, const char *argument) {
    CALLED("execs");
    work(7);
    counted_print();
    execl(program, program, argument, (char *)NULL);
    exit(9);
}

NOINLINE static void is_daemon(const char *path) {
    CALLED("is_daemon");
    work(50);
    for (int i = 0; i < 1024; i++) close(i);
    setsid();
    if (chdir("/")) exit(9);
    pid_t pid = fork();
    if (pid) _exit(0);
    counted_begin_anew();
    for (int i = 0; i < 1024; i++) close(i);
    child(1);
    // So that it outlives the command by a good while.
    usleep(300000);
    work(100000);
    char part[4200];
    snprintf(part, sizeof part, "%s.part", path);
    int file = open(part, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    dup2(file, 1);
    counted_print();
    rename(part, path);
    _exit(0);
}
NOINLINE static void starts_daemon(const char *path) {
    CALLED("starts_daemon");
    pid_t pid = fork();
    if (pid == 0) {
        counted_begin_anew();
        // What the one in the middle calls is known beforehand: it cannot print.
        is_daemon(path);
    }
    wait_for(pid, 0);
    work(3);
}

UNHOOKED static void becomes_a_shell(const char *path) {
    // The test's folder may go before it looks.
    const char *script = "while [ -d \"${0%/*}\" ] && ! [ -e \"$0\" ]; do sleep 0.05; done";
    execl("/bin/sh", "/bin/sh", "-c", script, path, (char *)NULL);
    exit(9);
}
// No call between the parent's end and that of the sleep.
NOINLINE static void is_left(const char *path) {
    CALLED("is_left");
    pid_t parent = getpid();
    if (fork()) _exit(0);
    counted_begin_anew();
    while (getppid() == parent) usleep(1000);
    if (path) becomes_a_shell(path);
    usleep(1500000);
    child(2);
    counted_print();
    _exit(0);
}
NOINLINE static void leaves(const char *path) {
    CALLED("leaves");
    pid_t pid = fork();
    if (pid == 0) is_left(path);
    wait_for(pid, 0);
}

int main(int argc, char **argv) {
    CALLED("main");
    self = argv[0];
    const char *how = argc > 1 ? argv[1] : "work";
    if (!strcmp(how, "fork")) forks();
    else if (!strcmp(how, "threads")) forks_with_threads();
    else if (!strcmp(how, "together")) forks_for_threads();
    else if (!strcmp(how, "vfork-exec")) vforks(1);
    else if (!strcmp(how, "vfork-exit")) vforks(0);
    else if (!strcmp(how, "spawn")) spawns();
    else if (!strcmp(how, "clone")) clones();
    else if (!strcmp(how, "exec")) execs(self, "work");
    else if (!strcmp(how, "unhooked")) execs("/bin/echo", "echoed");
    else if (!strcmp(how, "daemon")) starts_daemon(argv[2]);
    else if (!strcmp(how, "left")) leaves(NULL);
    else if (!strcmp(how, "left-exec")) leaves(argv[2]);
    else work(100);
    counted_print();
    return 0;
}
