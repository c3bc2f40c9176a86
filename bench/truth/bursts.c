/* A thread that sleeps, works a little, and sleeps again. Its clock tells the truth, of the
 * sleeps too: to fall asleep and to wake takes CPU time.
 *
 * short: 30 us of work after 0.4 ms; long: 1 ms after 4 ms; random: 30 us to 1 ms after 0.4 to
 * 4 ms; aligned: awake at each full millisecond, as timers are. */
#define _GNU_SOURCE
#include "truth.h"

ALONE uint64_t look(uint64_t x, unsigned units)
{
	UNITS(x, units)
	return x;
}

ALONE uint64_t answer(uint64_t x, unsigned units)
{
	UNITS(x, units)
	return x;
}

ALONE void doze(uint64_t ns)
{
	struct timespec t = {0, (long)ns};
	nanosleep(&t, NULL);
}

ALONE void doze_until(uint64_t ns)
{
	struct timespec t = {(time_t)(ns / 1000000000u), (long)(ns % 1000000000u)};
	clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL);
}

static struct part parts[] = {{"look", NULL, 0}, {"answer", NULL, 0}, {"doze", NULL, 0}};

OUTSIDE static void burst(unsigned units)
{
	uint64_t start = cpu_ns();
	sink = look(sink, units / 3);
	parts[0].ns += cpu_since(start);
	start = cpu_ns();
	sink = answer(sink, units - units / 3);
	parts[1].ns += cpu_since(start);
}

OUTSIDE static void nap(uint64_t ns)
{
	uint64_t start = cpu_ns();
	doze(ns);
	parts[2].ns += cpu_since(start);
}

OUTSIDE static void short_bursts(unsigned rounds)
{
	while (rounds--) {
		burst(24000);
		nap(400000);
	}
	tell(parts, 3);
}

OUTSIDE static void long_bursts(unsigned rounds)
{
	while (rounds--) {
		burst(800000);
		nap(4000000);
	}
	tell(parts, 3);
}

OUTSIDE static void random_bursts(unsigned rounds)
{
	uint64_t state = 88172645463325252u;
	while (rounds--) {
		burst(24000 + chance(&state) % 776000);
		nap(400000 + chance(&state) % 3600000);
	}
	tell(parts, 3);
}

OUTSIDE static void aligned(unsigned rounds)
{
	parts[2].name = "doze_until";
	while (rounds--) {
		uint64_t next = (wall_ns() / 1000000 + 1) * 1000000, start = cpu_ns();
		doze_until(next);
		parts[2].ns += cpu_since(start);
		burst(240000);
	}
	tell(parts, 3);
}

SCENARIOS({"short", short_bursts}, {"long", long_bursts}, {"random", random_bursts},
          {"aligned", aligned})
