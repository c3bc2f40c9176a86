// Work of known shares, for samples. Says where the code of its functions is.
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

// The linker knows where a section of such a name begins and ends. Loops are as fast as each other where they stand alike.
#define CODE(name)                                                                                                     \
    extern char __start_##name##_code[], __stop_##name##_code[];                                                       \
    __attribute__((noinline, aligned(64), section(#name "_code"))) void name

static volatile unsigned long sink = 1;

// Each step needs the one before, so that a turn takes as long wherever the code lies.
CODE(large)(long turns) {
    unsigned long value = sink;
    for (long turn = 0; turn < turns; turn++) {
        value ^= value << 13;
        value ^= value >> 7;
        value ^= value << 17;
        __asm__ volatile("" : "+r"(value));
    }
    sink = value;
}

CODE(small)(long turns) {
    unsigned long value = sink;
    for (long turn = 0; turn < turns; turn++) {
        value ^= value << 13;
        value ^= value >> 7;
        value ^= value << 17;
        __asm__ volatile("" : "+r"(value));
    }
    sink = value;
}

#define SAY(name) printf("code " #name " %d %p %p\n", getpid(), (void *)__start_##name##_code, (void *)__stop_##name##_code)

static void say(void) {
    SAY(large);
    SAY(small);
    fflush(stdout);
}

static long used_ns(void) {
    struct timespec time;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return time.tv_sec * 1000000000L + time.tv_nsec;
}

static long milliseconds;

static long each_ns;

static void *is_short(void *unused) {
    while (used_ns() < each_ns)
        large(2000);
    return unused;
}

// So many threads, one after the other. They go before others where they may: what waits for a processor has it when the kernel ticks, and
// would end before the next tick.
static void short_threads(int count) {
    struct sched_param first = {.sched_priority = 1};
    if (sched_setscheduler(0, SCHED_FIFO, &first))
        puts("waits for others");
    for (int number = 0; number < count; number++) {
        pthread_t thread;
        pthread_create(&thread, 0, is_short, 0);
        pthread_join(thread, 0);
    }
    struct timespec time;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
    printf("used %ld\n", time.tv_sec * 1000000000L + time.tv_nsec);
}

// Two of large to one of small. Steps that take far longer than others are not counted: a virtual machine waited for its host
// meanwhile, which the thread's clock has and samples have not. Says what was counted, and what the clock had.
static void *shares(void *unused) {
    long begin = used_ns(), now = begin, worked = 0, least = 0;
    while (worked < milliseconds * 1000000L) {
        large(40000);
        small(20000);
        long step = used_ns() - now;
        now += step;
        if (!least || step < least)
            least = step;
        if (step < 10 * least)
            worked += step;
    }
    printf("worked %d %ld %ld\n", gettid(), worked, now - begin);
    fflush(stdout);
    return unused;
}

// Half of each beat in large, half in small, by the time that the thread has used.
static void beats(long beat_ns) {
    cpu_set_t first;
    sched_getaffinity(0, sizeof first, &first);
    for (int number = 0, found = 0; number < CPU_SETSIZE; number++) {
        if (found)
            CPU_CLR(number, &first);
        found |= CPU_ISSET(number, &first);
    }
    sched_setaffinity(0, sizeof first, &first);
    // So that what is taken at each beat from the beginning of the program on is in the midst of small.
    long begin = used_ns() + beat_ns * 15 / 100, now;
    while ((now = used_ns() - begin) < milliseconds * 1000000L)
        if ((now + beat_ns) % beat_ns < beat_ns / 2)
            large(5000);
        else
            small(5000);
}

int main(int count, char **words) {
    const char *how = count > 1 ? words[1] : "";
    milliseconds = count > 2 ? atol(words[2]) : 0;
    say();
    if (!strcmp(how, "shares")) {
        shares(0);
    } else if (!strcmp(how, "threads")) {
        pthread_t other;
        pthread_create(&other, 0, shares, 0);
        shares(0);
        pthread_join(other, 0);
    } else if (!strcmp(how, "children")) {
        for (int number = 0; number < 2; number++)
            if (!fork()) {
                if (number)
                    execl(words[0], words[0], "shares", words[2], (char *)0);
                shares(0);
                _exit(0);
            }
        while (wait(0) > 0) {
        }
    } else if (!strcmp(how, "beats")) {
        beats(atol(words[3]));
    } else if (!strcmp(how, "short")) {
        each_ns = atol(words[3]) * 1000;
        short_threads(atoi(words[2]));
    } else if (!strcmp(how, "waits")) {
        shares(0);
        puts("waits");
        fflush(stdout);
        pause();
    }
    return 0;
}
