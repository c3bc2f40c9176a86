/* Measures what a hooked call and its return cost on this machine. Built with hooks, run under
 * the recorder; the plain twins of the hooked functions have none. Writes picoseconds for a
 * call and its return to the file that it is given:
 *
 *   hot COST        in ordinary code: small functions, loads, branches that go either way
 *   cold COST       with the first-level cache cold
 *   least COST      hot, and beside work that leaves the processor room for other work
 *
 * A loop of calls that do nothing would not do for the first: a processor that has nothing else
 * to do has the hooks' work done in half the time that they take of a program.
 *
 * Another program, or another guest of the same processor, may slow everything down to half its
 * speed for longer than all of this takes. So the plain calls and those that cost more are
 * timed side by side, many times; what counts is by how much the one takes longer than the
 * other in the median round, and the plain calls in the best. Beside work that leaves room it
 * is the round at the lower quartile: a processor may fall, for many rounds, into a step in which it
 * finds less of that room.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define PLAIN __attribute__((no_instrument_function))
#define ALONE __attribute__((noinline, noclone))

enum {
    ROUNDS = 127,       /* an odd number has one median */
    HOT_CALLS = 500,    /* that do nothing: their times tell how the cost is shared */
    HEAP = 128,         /* sorted in some ten microseconds, less than a time slice */
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

ALONE static uint64_t hot_caller(uint64_t value)
{
    for (int i = 0; i < HOT_CALLS; i++)
        value = hot_callee(value);
    return value;
}

/* Ordinary code: a heap of numbers, from which the smallest is taken again and again. */
static uint32_t heap[HEAP];

PLAIN static void fill(uint32_t *seed)
{
    for (int i = 0; i < HEAP; i++)
        heap[i] = *seed = *seed * 1664525 + 1013904223;
}

#define ORDINARY(prefix, attribute, counted)                                                   \
    ALONE attribute static int prefix##less(uint32_t a, uint32_t b)                            \
    {                                                                                          \
        counted;                                                                               \
        return heap[a] < heap[b];                                                              \
    }                                                                                          \
    ALONE attribute static void prefix##swap(uint32_t a, uint32_t b)                           \
    {                                                                                          \
        counted;                                                                               \
        uint32_t kept = heap[a];                                                               \
        heap[a] = heap[b];                                                                     \
        heap[b] = kept;                                                                        \
    }                                                                                          \
    ALONE attribute static void prefix##sift(uint32_t at, uint32_t size)                       \
    {                                                                                          \
        counted;                                                                               \
        for (uint32_t child = 2 * at + 1; child < size; child = 2 * at + 1) {                  \
            if (child + 1 < size && prefix##less(child + 1, child))                            \
                child++;                                                                       \
            if (!prefix##less(child, at))                                                      \
                return;                                                                        \
            prefix##swap(child, at);                                                           \
            at = child;                                                                        \
        }                                                                                      \
    }                                                                                          \
    ALONE attribute static void prefix##sort(void)                                             \
    {                                                                                          \
        counted;                                                                               \
        for (uint32_t at = HEAP / 2; at-- > 0;)                                                \
            prefix##sift(at, HEAP);                                                            \
        for (uint32_t size = HEAP; --size > 0;) {                                              \
            prefix##swap(0, size);                                                             \
            prefix##sift(0, size);                                                             \
        }                                                                                      \
    }

static uint64_t calls;
ORDINARY(hot_, , )
ORDINARY(plain_, PLAIN, )
ORDINARY(counting_, PLAIN, calls++)

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

PLAIN static void print(FILE *file, const char *name, struct trial *trial, int rank, double calls)
{
    qsort(trial->longer, ROUNDS, sizeof trial->longer[0], by_size);
    double cost = trial->longer[rank] * (double)trial->least / calls;
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
        uint32_t seed = round;
        fill(&seed);
        counting_sort();
        seed = round;
        fill(&seed);
        uint64_t start = now_ps();
        plain_sort();
        uint64_t between = now_ps();
        seed = round;
        fill(&seed);
        uint64_t again = now_ps();
        hot_sort();
        note(&hot, round, between - start, now_ps() - again);
        value = hot_caller(value);
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
    print(file, "hot", &hot, ROUNDS / 2, (double)calls / ROUNDS);
    print(file, "cold", &cold, ROUNDS / 2, COLD_CALLS);
    print(file, "least", &beside, ROUNDS / 4, LONG_CALLS);
    return fclose(file) != 0 || value == 0;
}
