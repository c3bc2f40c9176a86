/* Measures what a hooked call and its return cost on this machine. Built with hooks, run under
 * the recorder; the plain twins of the hooked functions have none. Writes picoseconds for a
 * call and its return to the file that it is given:
 *
 *   hot COST        with caches and predictors hot, chunks handed over as ever
 *   cold COST       with the first-level cache cold
 *   clock COST      reading the processor's counter twice, and nothing else
 *
 * Another program, or another guest of the same processor, may slow everything down to half its
 * speed for longer than all of this takes. So the plain calls and those that cost more are
 * timed side by side, many times; what counts is by how much the one takes longer than the
 * other in the median round, and the plain calls in the best.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define PLAIN __attribute__((no_instrument_function))
#define ALONE __attribute__((noinline, noclone))

enum {
    ROUNDS = 255,       /* an odd number has one median */
    HOT_CALLS = 8000,   /* a round of some ten microseconds, shorter than a time slice */
    COLD_CALLS = 24,
    EVICTED = 96 << 10, /* bytes read between two cold calls: more than a first-level cache */
    LINE = 64,
};

static volatile uint8_t pages[EVICTED];

ALONE static uint64_t hot_callee(uint64_t value)
{
    __asm__ volatile("" : "+r"(value));
    return value + 1;
}

ALONE PLAIN static uint64_t plain_hot_callee(uint64_t value)
{
    __asm__ volatile("" : "+r"(value));
    return value + 1;
}

ALONE static uint64_t hot_caller(uint64_t value)
{
    for (int i = 0; i < HOT_CALLS; i++)
        value = hot_callee(value);
    return value;
}

ALONE PLAIN static uint64_t plain_hot_caller(uint64_t value)
{
    for (int i = 0; i < HOT_CALLS; i++)
        value = plain_hot_callee(value);
    return value;
}

PLAIN static inline uint64_t counter(void)
{
#if defined(__x86_64__)
    return __builtin_ia32_rdtsc();
#else
    return 0;
#endif
}

ALONE PLAIN static uint64_t clock_caller(uint64_t value)
{
    for (int i = 0; i < HOT_CALLS; i++) {
        value += counter() & 1;
        value = plain_hot_callee(value);
        value += counter() & 1;
    }
    return value;
}

PLAIN static inline uint64_t now_ps(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (now.tv_sec * UINT64_C(1000000000) + now.tv_nsec) * 1000;
}

ALONE PLAIN static void evict(void)
{
    for (int i = 0; i < EVICTED; i += LINE)
        pages[i]++;
}

ALONE static uint64_t cold_callee(uint64_t value)
{
    __asm__ volatile("" : "+r"(value));
    return value + 1;
}

ALONE PLAIN static uint64_t plain_cold_callee(uint64_t value)
{
    __asm__ volatile("" : "+r"(value));
    return value + 1;
}

/* Time in the calls alone; reading the clock is in both, and falls out of the difference. */
ALONE static uint64_t cold_caller(uint64_t value, uint64_t *took)
{
    for (int i = 0; i < COLD_CALLS; i++) {
        evict();
        uint64_t start = now_ps();
        value = cold_callee(value);
        *took += now_ps() - start;
    }
    return value;
}

ALONE PLAIN static uint64_t plain_cold_caller(uint64_t value, uint64_t *took)
{
    for (int i = 0; i < COLD_CALLS; i++) {
        evict();
        uint64_t start = now_ps();
        value = plain_cold_callee(value);
        *took += now_ps() - start;
    }
    return value;
}

/* One thing timed many times, each time beside the same without what is to be measured. */
struct trial {
    double longer[ROUNDS]; /* as a part of the time without */
    uint64_t least;        /* picoseconds without, in the best round */
};

PLAIN static void note(struct trial *trial, int round, uint64_t plain, uint64_t with)
{
    trial->longer[round] = plain ? ((double)with - (double)plain) / (double)plain : 0;
    if (round == 0 || plain < trial->least)
        trial->least = plain;
}

PLAIN static int by_size(const void *a, const void *b)
{
    double difference = *(const double *)a - *(const double *)b;
    return (difference > 0) - (difference < 0);
}

PLAIN static void print(FILE *file, const char *name, struct trial *trial, int calls)
{
    qsort(trial->longer, ROUNDS, sizeof trial->longer[0], by_size);
    double cost = trial->longer[ROUNDS / 2] * (double)trial->least / calls;
    fprintf(file, "%s %.0f\n", name, cost > 0 ? cost : 0);
}

PLAIN int main(int argc, char **argv)
{
    static struct trial hot, cold, clock_read;
    FILE *file = argc > 1 ? fopen(argv[1], "w") : stdout;
    if (!file)
        return 1;
    uint64_t value = 0;
    for (int round = 0; round < ROUNDS; round++) {
        uint64_t times[4] = {now_ps()};
        value = clock_caller(value);
        times[1] = now_ps();
        value = plain_hot_caller(value);
        times[2] = now_ps();
        value = hot_caller(value);
        times[3] = now_ps();
        note(&clock_read, round, times[2] - times[1], times[1] - times[0]);
        note(&hot, round, times[2] - times[1], times[3] - times[2]);
        uint64_t took = 0, plain_took = 0;
        value = plain_cold_caller(value, &plain_took);
        value = cold_caller(value, &took);
        note(&cold, round, plain_took, took);
    }
    print(file, "hot", &hot, HOT_CALLS);
    print(file, "cold", &cold, COLD_CALLS);
    print(file, "clock", &clock_read, HOT_CALLS);
    return fclose(file) != 0 || value == 0;
}
