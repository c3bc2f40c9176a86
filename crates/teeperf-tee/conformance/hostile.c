/* A host that writes anything anywhere in the memory it lends, at any time. Around the memory lie pages that
 * nobody may touch; the program's own data are looked at for what is not its own. */
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>

#include "lent.h"

#define LARGE (1 << 20)
#define SMALL (TEEPERF_LEAST + 4096)
#define AROUND (1 << 20)
#define CANARIES 65536

static unsigned char before[CANARIES] = { 1 };
static uint64_t counted;
static uint64_t tree[1024];
static int sums;
static unsigned char behind[CANARIES] = { 1 };

/* Says that it was long, so that nobody is waited for. */
NO_HOOK uint32_t teeperf_port_pause(void)
{
	return 200000;
}

/* Both clocks are tried: the host says which. */
NO_HOOK uint64_t teeperf_port_counter(void)
{
	counted += 1000;
	return counted;
}

NO_HOOK void *teeperf_port_tree(size_t *length)
{
	*length = sizeof(tree);
	return tree;
}

NO_HOOK int teeperf_port_sums(void)
{
	return sums;
}

static NO_HOOK uint32_t random_number(uint32_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 17;
	*state ^= *state << 5;
	return *state;
}

/* Mostly what steers: the head, the baton, the clock, states; small numbers as often as any. */
static NO_HOOK void write_one(volatile uint32_t *words, size_t length, uint32_t *state)
{
	uint32_t value = random_number(state);
	size_t place = random_number(state) % length;

	switch (random_number(state) % 8) {
	case 0:
		place %= 512;
		break;
	case 1:
		place = 4096 + 1024 + place % 1024;
		break;
	case 2: /* so that it can be attached again */
		memcpy((void *)words, "TPARENA\x01", 8);
		place = 8;
		value = 1 + value % 2;
		break;
	case 3:
		place = 384;
		break;
	case 4:
		place = 4096 + 1024 + place % 1024;
		value = 0;
		break;
	}
	if (random_number(state) % 3 == 0)
		value %= 8;
	if (place == 132)
		value &= random_number(state) % 64 ? 0 : 3;
	words[place / 4] = value;
}

static CALLED void leaf(int number)
{
	(void)number;
	DOES_SOMETHING;
}

static CALLED void deep(int depth)
{
	leaf(depth);
	if (depth > 1)
		deep(depth - 1);
	DOES_SOMETHING;
}

static NO_HOOK double seconds(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec + now.tv_nsec / 1e9;
}

static NO_HOOK void suffer(size_t length, double for_seconds)
{
	unsigned char *around = mmap(NULL, length + 2 * AROUND, PROT_NONE,
				     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	unsigned char *base = around + AROUND;
	double end = seconds() + for_seconds;
	unsigned attached = 0, rounds = 0;
	pid_t host;
	int i;

	if (around == MAP_FAILED || mmap(base, length, PROT_READ | PROT_WRITE,
					 MAP_SHARED | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == MAP_FAILED)
		exit(2);
	host = fork();
	if (host == 0) {
		uint32_t state = 4711;

		for (;;)
			write_one((volatile uint32_t *)base, length, &state);
	}
	while (seconds() < end) {
		attached += teeperf_attach(base, length) == 0;
		for (i = 0; i < 50; i++)
			deep(20);
		/* A lull, in which the short way is gone as well. */
		if (rounds++ % 8 == 0) {
			kill(host, SIGSTOP);
			memset(base + 4096 + 1024, 0, 1024);
			for (i = 0; i < 50; i++)
				deep(20);
			kill(host, SIGCONT);
		}
		teeperf_detach();
	}
	kill(host, SIGKILL);
	waitpid(host, NULL, 0);
	printf("attached %s\n", attached > 10 ? "often" : "hardly");
	munmap(around, length + 2 * AROUND);
}

NO_HOOK int main(void)
{
	int i;

	memset(before, 0xA5, sizeof(before));
	memset(behind, 0xA5, sizeof(behind));
	for (sums = 0; sums < 2; sums++) {
		suffer(LARGE, 0.5);
		suffer(SMALL, 0.5);
	}
	for (i = 0; i < CANARIES; i++)
		if (before[i] != 0xA5 || behind[i] != 0xA5)
			return 6;
	return 0;
}
