/* A program in step with a clock: 21 % of each period in one function, 21 % in a second, 58 % in
 * a third. Who looks strictly periodically sees the same function at each look. The thread's
 * clock tells the truth. Rounds are periods.
 *
 * 100us, 1ms, 4ms: in step with the wall clock; cpu: 1 ms of the thread's own CPU time. */
#include "truth.h"

#define SPIN(name, clock)                 \
	ALONE void name(uint64_t until)       \
	{                                     \
		while (clock() < until)           \
			;                             \
	}
SPIN(first, wall_ns)
SPIN(second, wall_ns)
SPIN(third, wall_ns)
SPIN(first_cpu, cpu_ns)
SPIN(second_cpu, cpu_ns)
SPIN(third_cpu, cpu_ns)

typedef void spin_fn(uint64_t until);

OUTSIDE static void spin(struct part *part, spin_fn *function, uint64_t until)
{
	uint64_t start = cpu_ns();
	function(until);
	part->ns += cpu_since(start);
}

OUTSIDE static void beat(uint64_t period, unsigned rounds)
{
	struct part parts[] = {{"first", NULL, 0}, {"second", NULL, 0}, {"third", NULL, 0}};
	uint64_t start = (wall_ns() / period + 1) * period;
	for (; rounds--; start += period) {
		spin(&parts[0], first, start + period * 21 / 100);
		spin(&parts[1], second, start + period * 42 / 100);
		spin(&parts[2], third, start + period);
	}
	tell(parts, 3);
}

OUTSIDE static void beat_100us(unsigned rounds) { beat(100000, rounds * 10); }
OUTSIDE static void beat_1ms(unsigned rounds) { beat(1000000, rounds); }
OUTSIDE static void beat_4ms(unsigned rounds) { beat(4000000, (rounds + 3) / 4); }

OUTSIDE static void beat_cpu(unsigned rounds)
{
	struct part parts[] = {{"first_cpu", NULL, 0}, {"second_cpu", NULL, 0}, {"third_cpu", NULL, 0}};
	uint64_t start = (cpu_ns() / 1000000 + 1) * 1000000;
	for (; rounds--; start += 1000000) {
		spin(&parts[0], first_cpu, start + 210000);
		spin(&parts[1], second_cpu, start + 420000);
		spin(&parts[2], third_cpu, start + 1000000);
	}
	tell(parts, 3);
}

SCENARIOS({"100us", beat_100us}, {"1ms", beat_1ms}, {"4ms", beat_4ms}, {"cpu", beat_cpu})
