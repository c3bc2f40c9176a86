/* What the programs of this folder share: clocks, a kernel of work, and how they tell the truth.
 *
 * A program is called with the name of a scenario and a number of rounds. It prints
 *   truth NAME NANOSECONDS    CPU time in a function, by the thread's own clock, around its calls
 *   cpu NANOSECONDS           CPU time of the whole scenario, with its threads and children
 * Only the figures of a build without hooks are the truth: hooks take time within what is timed. */
#ifndef TRUTH_H
#define TRUTH_H
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

/* Of what drives the functions in question: never hooked. */
#define OUTSIDE __attribute__((no_instrument_function))
/* Of these functions: they stay functions in all builds. */
#define ALONE __attribute__((noinline, noclone))

OUTSIDE static inline uint64_t clock_ns(clockid_t clock)
{
	struct timespec t;
	clock_gettime(clock, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

OUTSIDE static inline uint64_t cpu_ns(void)
{
	return clock_ns(CLOCK_THREAD_CPUTIME_ID);
}

/* Of all threads, and of children that were waited for. */
OUTSIDE static inline uint64_t all_cpu_ns(void)
{
	struct rusage children;
	getrusage(RUSAGE_CHILDREN, &children);
	uint64_t seconds = (uint64_t)(children.ru_utime.tv_sec + children.ru_stime.tv_sec);
	uint64_t us = (uint64_t)(children.ru_utime.tv_usec + children.ru_stime.tv_usec);
	return clock_ns(CLOCK_PROCESS_CPUTIME_ID) + seconds * 1000000000u + us * 1000;
}

OUTSIDE static inline uint64_t wall_ns(void)
{
	return clock_ns(CLOCK_MONOTONIC);
}

/* A chain of multiplications, some 1.2 ns each: the processor cannot do two of them at once,
 * nor one call's beside the next one's where calls hand on x. */
#define UNITS(x, n)                            \
	for (unsigned i_ = 0; i_ < (n); i_++) {    \
		(x) = (x) * 0x9e3779b97f4a7c15u + 1;   \
		__asm__ volatile("" : "+r"(x));        \
	}

/* A function that does this work. */
#define WORK(name, n)                     \
	ALONE uint64_t name(uint64_t x)       \
	{                                     \
		UNITS(x, n)                       \
		return x;                         \
	}

/* Behind the last call of a function that is to stay on the stack meanwhile. */
#define NO_TAIL_CALL __asm__ volatile("")

typedef uint64_t work_fn(uint64_t);

/* A function whose truth is told, and its CPU time so far. */
struct part {
	const char *name;
	work_fn *work;
	uint64_t ns;
};

static volatile uint64_t sink;
static uint64_t clock_cost, scenario_start;

OUTSIDE static inline uint64_t repeat(work_fn *work, unsigned times, uint64_t x)
{
	while (times--)
		x = work(x);
	return x;
}

/* Time since `start`, by the thread's clock, less what one look at it takes. */
OUTSIDE static inline uint64_t cpu_since(uint64_t start)
{
	uint64_t took = cpu_ns() - start;
	return took > clock_cost ? took - clock_cost : 0;
}

/* Calls a function so many times, and times them together. */
OUTSIDE static inline uint64_t timed(struct part *part, unsigned times, uint64_t x)
{
	uint64_t start = cpu_ns();
	x = repeat(part->work, times, x);
	part->ns += cpu_since(start);
	return x;
}

OUTSIDE static inline void begin(void)
{
	clock_cost = UINT64_MAX;
	for (int i = 0; i < 1000; i++) {
		uint64_t start = cpu_ns(), took = cpu_ns() - start;
		clock_cost = took < clock_cost ? took : clock_cost;
	}
	scenario_start = all_cpu_ns();
}

OUTSIDE static inline void tell(const struct part *parts, unsigned count)
{
	for (unsigned i = 0; i < count; i++)
		printf("truth %s %" PRIu64 "\n", parts[i].name, parts[i].ns);
}

OUTSIDE static inline void end(void)
{
	printf("cpu %" PRIu64 "\n", all_cpu_ns() - scenario_start);
}

/* A scenario of a program. */
struct scenario {
	const char *name;
	void (*run)(unsigned rounds);
};

OUTSIDE static inline int run_scenario(const struct scenario *all, unsigned count, int argc,
                                       char **argv)
{
	for (unsigned i = 0; argc == 3 && i < count; i++) {
		if (!strcmp(all[i].name, argv[1])) {
			begin();
			all[i].run((unsigned)strtoul(argv[2], NULL, 10));
			end();
			return 0;
		}
	}
	fprintf(stderr, "usage: %s SCENARIO ROUNDS\n", argv[0]);
	return 2;
}

#define SCENARIOS(...)                                                              \
	OUTSIDE int main(int argc, char **argv)                                         \
	{                                                                               \
		const struct scenario all[] = {__VA_ARGS__};                                \
		return run_scenario(all, sizeof all / sizeof *all, argc, argv);             \
	}

/* A number that looks like chance, the same in each run. */
OUTSIDE static inline uint64_t chance(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state;
}

/* A pause of up to so many units, by chance: what repeats is then in step with no sampler. */
OUTSIDE static inline void jitter(unsigned units)
{
	static uint64_t state = 88172645463325252u;
	uint64_t x = chance(&state);
	unsigned count = (unsigned)(x % units);
	UNITS(x, count)
	sink ^= x & 1;
}
#endif
