/* Measures what a hooked call and its return cost on this machine, hot and cold. Built with
 * hooks, run under the recorder; the plain twins of the hooked functions have none. Writes
 * one line for each state to the file that it is given:
 *
 *   hot PLAIN HOOKED        picoseconds of one call and its return, without and with hooks
 *   cold PLAIN HOOKED
 */
#include <stdint.h>
#include <stdio.h>
#include <time.h>

#define PLAIN __attribute__((no_instrument_function))
#define ALONE __attribute__((noinline, noclone))

enum {
    ROUNDS = 256,       /* the least of so many: what else the machine does only adds */
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

PLAIN static void keep_least(uint64_t *least, uint64_t value)
{
    if (value < *least)
        *least = value;
}

PLAIN int main(int argc, char **argv)
{
    FILE *file = argc > 1 ? fopen(argv[1], "w") : stdout;
    if (!file)
        return 1;
    uint64_t hot = UINT64_MAX, plain_hot = UINT64_MAX, cold = UINT64_MAX, plain_cold = UINT64_MAX;
    uint64_t value = 0;
    for (int round = 0; round < ROUNDS; round++) {
        uint64_t start = now_ps();
        value = plain_hot_caller(value);
        uint64_t between = now_ps();
        value = hot_caller(value);
        keep_least(&hot, now_ps() - between);
        keep_least(&plain_hot, between - start);
        uint64_t took = 0, plain_took = 0;
        value = plain_cold_caller(value, &plain_took);
        value = cold_caller(value, &took);
        keep_least(&cold, took);
        keep_least(&plain_cold, plain_took);
    }
    fprintf(file, "hot %llu %llu\ncold %llu %llu\n", (unsigned long long)plain_hot / HOT_CALLS,
            (unsigned long long)hot / HOT_CALLS, (unsigned long long)plain_cold / COLD_CALLS,
            (unsigned long long)cold / COLD_CALLS);
    return fclose(file) != 0 || value == 0;
}
