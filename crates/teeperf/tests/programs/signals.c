// Signal handlers that are hooked themselves, every 50 microseconds, while the program
// calls as fast as it can. A handler may run between any two instructions of a hook.
// Prints its handler runs with the other counts; the total tells what nothing may lose.
#include "counted.h"
#include <signal.h>
#include <sys/time.h>
#include <time.h>

static volatile long sink;

NOINLINE static void from_handler(int depth) {
    CALLED("from_handler");
    if (depth) from_handler(depth - 1);
}
NOINLINE static void handler(int number) {
    CALLED("handler");
    (void)number;
    from_handler(2);
}
NOINLINE static long leaf(long n) {
    CALLED("leaf");
    return n + sink;
}
NOINLINE static long work(long n) {
    CALLED("work");
    return leaf(n) + leaf(n + 1);
}
UNHOOKED static double seconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

int main(int argc, char **argv) {
    CALLED("main");
    long milliseconds = counted_argument(argc, argv, 1, 1000);
    int on_own_stack = argc > 2;
    // Above every frame that a signal interrupts, where memory of the heap is not.
    char room[65536];
    stack_t stack = {.ss_sp = room, .ss_size = sizeof room};
    if (on_own_stack) sigaltstack(&stack, NULL);
    struct sigaction action = {.sa_handler = handler, .sa_flags = SA_RESTART | SA_ONSTACK};
    sigaction(SIGPROF, &action, NULL);
    // Another one may interrupt the handler.
    sigaction(SIGALRM, &action, NULL);
    struct itimerval often = {{0, 50}, {0, 50}};
    timer_t timer;
    struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGPROF};
    struct itimerspec often_too = {{0, 50000}, {0, 50000}};
    if (timer_create(CLOCK_MONOTONIC, &event, &timer) || timer_settime(timer, 0, &often_too, NULL) ||
        setitimer(ITIMER_REAL, &often, NULL)) {
        perror("timer");
        return 3;
    }
    double end = seconds() + (double)milliseconds / 1000;
    while (seconds() < end)
        for (int i = 0; i < 1000; i++) sink = work(i) & 1;
    struct itimerval never = {{0, 0}, {0, 0}};
    setitimer(ITIMER_REAL, &never, NULL);
    timer_delete(timer);
    sigset_t all;
    sigfillset(&all);
    sigprocmask(SIG_BLOCK, &all, NULL);
    counted_print();
    return 0;
}
