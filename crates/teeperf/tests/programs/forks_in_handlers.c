// A handler forks every few milliseconds, whatever it interrupts; the recorder stands still most of the
// time, so that is most often a wait for room. Each child calls in the handler and behind it. Prints how
// many children there were.
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#define UNHOOKED __attribute__((no_instrument_function))

static volatile long sum, children, is_child;

__attribute__((noinline)) static void in_handler(void) { sum++; }

__attribute__((noinline)) static void work(void) { sum++; }

UNHOOKED static void handler(int number) {
    (void)number;
    if (is_child || children == 30) return;
    pid_t child = fork();
    if (child) {
        children += child > 0;
        return;
    }
    is_child = 1;
    in_handler();
}

// Has no hooks on its way.
UNHOOKED static pid_t hold_up(pid_t recorder) {
    pid_t child = fork();
    if (child) return child;
    for (int turn = 0; turn < 10; turn++) {
        kill(recorder, SIGSTOP);
        usleep(150000);
        kill(recorder, SIGCONT);
        usleep(30000);
    }
    _exit(0);
}

UNHOOKED int main(void) {
    struct itimerval every = {{0, 10000}, {0, 10000}}, never = {{0, 0}, {0, 0}};
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_handler = handler;
    action.sa_flags = SA_RESTART;
    sigaction(SIGALRM, &action, 0);
    pid_t holder = hold_up(getppid());
    setitimer(ITIMER_REAL, &every, 0);
    while (!is_child && !waitpid(holder, 0, WNOHANG))
        for (int i = 0; i < 1000 && !is_child; i++) work();
    if (is_child) {
        for (int i = 0; i < 1000; i++) work();
        _exit(0);
    }
    setitimer(ITIMER_REAL, &never, 0);
    while (wait(0) > 0) {}
    printf("%ld\n", children);
    return 0;
}
