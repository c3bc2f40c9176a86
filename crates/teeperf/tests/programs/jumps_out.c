// A handler leaves by siglongjmp every half millisecond, wherever the hooks were, for two seconds. Prints
// how often it did so, and how often the program worked.
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/time.h>
#include <time.h>

static sigjmp_buf place;
static volatile unsigned long jumps, worked;

__attribute__((no_instrument_function)) static void handler(int number) {
    (void)number;
    jumps++;
    siglongjmp(place, 1);
}

__attribute__((noinline)) static void work(void) { worked++; }

int main(void) {
    struct itimerval every = {{0, 500}, {0, 500}}, never = {{0, 0}, {0, 0}};
    static time_t end;
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_handler = handler;
    sigaction(SIGALRM, &action, 0);
    end = time(0) + 3;
    if (!sigsetjmp(place, 1)) setitimer(ITIMER_REAL, &every, 0);
    while (time(0) < end)
        for (int i = 0; i < 1000; i++) work();
    setitimer(ITIMER_REAL, &never, 0);
    printf("%lu %lu\n", jumps, worked);
    return 0;
}
