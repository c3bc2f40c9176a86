/* Functions whose frames differ, for what looks for the callers at any instruction of theirs. */
#define NOINLINE __attribute__((noinline))

static volatile unsigned long sink;

NOINLINE unsigned long leaf(unsigned long n)
{
	return n * n + sink;
}

NOINLINE unsigned long frame(unsigned long n)
{
	volatile unsigned long room[4];
	room[n & 3] = leaf(n);
	return room[n & 3] + 1;
}

NOINLINE unsigned long many(unsigned long a, unsigned long b, unsigned long c, unsigned long d)
{
	unsigned long e = leaf(a) + b, f = leaf(b) ^ c, g = leaf(c) - d;
	sink += frame(a ^ d);
	if (sink == a)
		return 1;
	return a + 3 * b + 5 * c + 7 * d + 9 * e + 11 * f + 13 * g + leaf(g);
}

NOINLINE unsigned long tail(unsigned long n)
{
	if (n & 1)
		return frame(n + 1);
	return leaf(n);
}

NOINLINE unsigned long through(unsigned long (*function)(unsigned long), unsigned long n)
{
	return function(n + sink);
}

NOINLINE unsigned long grows(unsigned long n)
{
	volatile unsigned char room[n];
	room[n - 1] = leaf(n);
	return room[n - 1] + tail(n);
}

NOINLINE unsigned long chooses(unsigned long n)
{
	switch (n) {
	case 0: return leaf(n) + 1;
	case 1: return frame(5);
	case 2: return sink + 3;
	case 3: return tail(n) * 3;
	case 4: return leaf(7);
	case 5: sink += 5; return many(n, n, n, n);
	default: return 0;
	}
}

#ifdef KEEPS_R11
/* Has something in r11 where it begins, as arguments of one convention are: hooks keep it then. */
NOINLINE unsigned long holds(unsigned long n)
{
	register unsigned long held __asm__("r11");
	__asm__ volatile("" : "=r"(held));
	return (n + held) / 2;
}
#endif

NOINLINE void stepped(void)
{
	for (unsigned long n = 1; n < 6; n += 2)
		sink += chooses(n);
	sink += tail(4) + grows(20) + through(leaf, 1) + through(tail, 2);
#ifdef KEEPS_R11
	sink += holds(sink);
#endif
}

int main(void)
{
	for (int round = 0; round < 3; round++)
		stepped();
	return 0;
}
