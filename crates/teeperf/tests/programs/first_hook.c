// A child whose first hook comes while the recorder stands still, and that is told to end meanwhile, by
// SIGINT and by SIGTERM. Prints how many milliseconds each took to end.
#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define UNHOOKED __attribute__((no_instrument_function))

static volatile int sum;

__attribute__((noinline)) static void call(void) { sum++; }

UNHOOKED static long now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * 1000 + time.tv_nsec / 1000000;
}

UNHOOKED int main(void) {
    pid_t recorder = getppid();
    call();
    kill(recorder, SIGSTOP);
    usleep(100000);
    for (int turn = 0; turn < 2; turn++) {
        pid_t child = fork();
        if (!child) {
            call();
            for (;;) pause();
        }
        usleep(100000);
        long told = now();
        kill(child, turn ? SIGTERM : SIGINT);
        waitpid(child, 0, 0);
        printf("%ld\n", now() - told);
    }
    kill(recorder, SIGCONT);
    return 0;
}
