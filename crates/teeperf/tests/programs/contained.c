// Works in a function whose name is chosen at build time. `contained MILLISECONDS [TIMES]`: so many times in processes of its own, one
// behind the other, which execute this program again.
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static volatile unsigned long sink = 1;

__attribute__((noinline)) void WORK(long turns) {
    for (long turn = 0; turn < turns; turn++)
        sink = sink * 3 + 1;
}

static long used_ms(void) {
    struct timespec time;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
    return time.tv_sec * 1000 + time.tv_nsec / 1000000;
}

int main(int count, char **words) {
    long times = count > 2 ? atol(words[2]) : 0;
    for (long at = 0; at < times; at++) {
        if (!fork()) {
            execl(words[0], words[0], words[1], (char *)0);
            _exit(127);
        }
        wait(0);
    }
    while (times == 0 && used_ms() < atol(words[1]))
        WORK(100000);
    return 0;
}
