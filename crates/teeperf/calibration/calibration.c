/* Measures what a hooked call and its return cost on this machine. Built with hooks, run under
 * the recorder; the plain twins of the hooked functions have none. Writes picoseconds for a
 * call and its return to the file that it is given:
 *
 *   hot COST        with caches and predictors hot, chunks handed over as ever
 *   cold COST       with the first-level cache cold
 *   least COST      hot, and beside work that leaves the processor room for other work
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
    ROUNDS = 127,       /* an odd number has one median */
    HOT_CALLS = 2000,   /* a round of some ten microseconds, shorter than a time slice */
    COLD_CALLS = 24,
    CHAIN = 16,         /* multiplications */
    LONG_CALLS = 500,
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

/* Some twenty nanoseconds, each step of which waits for the one before. */
PLAIN static inline uint64_t chain(uint64_t value)
{
    for (int i = 0; i < CHAIN; i++) {
        value = value * UINT64_C(0x9E3779B97F4A7C15) + 1;
        __asm__ volatile("" : "+r"(value));
    }
    return value;
}

ALONE static uint64_t long_callee(uint64_t value)
{
    return chain(value);
}

ALONE PLAIN static uint64_t plain_long_callee(uint64_t value)
{
    return chain(value);
}

ALONE static uint64_t long_caller(uint64_t value)
{
    for (int i = 0; i < LONG_CALLS; i++)
        value = long_callee(value);
    return value;
}

ALONE PLAIN static uint64_t plain_long_caller(uint64_t value)
{
    for (int i = 0; i < LONG_CALLS; i++)
        value = plain_long_callee(value);
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
    static struct trial hot, cold, beside;
    FILE *file = argc > 1 ? fopen(argv[1], "w") : stdout;
    if (!file)
        return 1;
    uint64_t value = 0;
    for (int round = 0; round < ROUNDS; round++) {
        uint64_t start = now_ps();
        value = plain_hot_caller(value);
        uint64_t between = now_ps();
        value = hot_caller(value);
        note(&hot, round, between - start, now_ps() - between);
        start = now_ps();
        value = plain_long_caller(value);
        between = now_ps();
        value = long_caller(value);
        note(&beside, round, between - start, now_ps() - between);
        uint64_t took = 0, plain_took = 0;
        value = plain_cold_caller(value, &plain_took);
        value = cold_caller(value, &took);
        note(&cold, round, plain_took, took);
    }
    print(file, "hot", &hot, HOT_CALLS);
    print(file, "cold", &cold, COLD_CALLS);
    print(file, "least", &beside, LONG_CALLS);
    return fclose(file) != 0 || value == 0;
}
