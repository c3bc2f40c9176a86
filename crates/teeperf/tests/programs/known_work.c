/* Two functions whose work is known: chains of dependent multiplications, so that nothing
 * overlaps and twice the length takes twice the time.
 *
 *   known_work truth NS        built without hooks: prints the nanoseconds that a call of
 *                              `heavy` and of `light` takes
 *   known_work run NS ROUNDS   calls both in turn, to be recorded
 *
 * `light` is asked for NS nanoseconds, `heavy` for three times as much.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static volatile uint64_t seed = 12345;

__attribute__((no_instrument_function, always_inline)) static inline uint64_t chain(long links)
{
    uint64_t value = seed;
    for (long i = 0; i < links; i++) {
        value *= 6364136223846793005u;
        __asm__ volatile("" : "+r"(value));
    }
    return value;
}

__attribute__((noinline)) static uint64_t heavy(long links)
{
    return chain(3 * links);
}

__attribute__((noinline)) static uint64_t light(long links)
{
    return chain(links);
}

__attribute__((no_instrument_function)) static double now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return 1e9 * now.tv_sec + now.tv_nsec;
}

/* Least time of a call among some tries: what the machine does else only adds. */
__attribute__((no_instrument_function)) static double call_ns(uint64_t (*work)(long), long links)
{
    double least = 1e99;
    long calls = 1 + 200000 / (links + 1);
    for (int try = 0; try < 40; try++) {
        double start = now_ns();
        for (long i = 0; i < calls; i++)
            seed = work(links);
        double each = (now_ns() - start) / calls;
        least = each < least ? each : least;
    }
    return least;
}

/* Links that take so long: found with a chain that is long enough to be timed well. */
__attribute__((no_instrument_function)) static long links_for(double ns)
{
    const long many = 200000;
    double least = 1e99;
    for (int try = 0; try < 40; try++) {
        double start = now_ns();
        seed = chain(many);
        double took = now_ns() - start;
        least = took < least ? took : least;
    }
    long links = ns * many / least + 0.5;
    return links > 0 ? links : 1;
}

__attribute__((noinline)) static void alternate(long links, long rounds)
{
    for (long i = 0; i < rounds; i++) {
        seed = heavy(links);
        seed = light(links);
    }
}

int main(int argc, char **argv)
{
    if (argc == 3 && !strcmp(argv[1], "truth")) {
        long links = links_for(atof(argv[2]));
        printf("%ld links, heavy %.3f ns, light %.3f ns\n", links, call_ns(heavy, links),
               call_ns(light, links));
        return 0;
    }
    if (argc == 4 && !strcmp(argv[1], "run")) {
        alternate(links_for(atof(argv[2])), atol(argv[3]));
        return 0;
    }
    fprintf(stderr, "usage: known_work truth NS | run NS ROUNDS\n");
    return 2;
}
