// A signal handler that sleeps for milliseconds, while the program does nothing but calls: it comes in
// at every place of a hook, between its look at the clock and the reserving of its place too.
// First argument: rounds of the loop that is interrupted.
#include "counted.h"
#include <signal.h>
#include <sys/time.h>
#include <time.h>

static volatile long sum;

NOINLINE static void leaf(void) { sum++; }

NOINLINE static void handler(int signal) {
    CALLED("handler");
    struct timespec rest = {0, 10 * 1000 * 1000};
    nanosleep(&rest, NULL);
    sum += signal;
}

int main(int argc, char **argv) {
    struct sigaction action = {.sa_handler = handler, .sa_flags = SA_RESTART};
    struct itimerval every = {{0, 13 * 1000}, {0, 13 * 1000}};
    if (sigaction(SIGALRM, &action, NULL) || setitimer(ITIMER_REAL, &every, NULL)) return 2;
    for (long i = counted_argument(argc, argv, 1, 1000); i > 0; i--) leaf();
    struct itimerval never = {{0, 0}, {0, 0}};
    setitimer(ITIMER_REAL, &never, NULL);
    counted_print();
    return 0;
}
