/* Work of the program's own, page faults and system calls, where samplers have little to go by.
 *
 * children: processes of 2 ms; brief: threads of half a millisecond; naps: naps of 50 us between
 * system calls; loop: a regular loop of some 60 us; step: awake each 2 ms, in step with the
 * kernel's tick. */
#define _GNU_SOURCE
#include "truth.h"
#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <unistd.h>

#define FAULTS_SIZE (1u << 18)
#define PAGE 4096

static int random_fd;
static char buffer[1 << 14];

WORK(compute, 16000)
WORK(compute_little, 4000)
WORK(compute_more, 32000)

OUTSIDE static inline void *map(size_t size, int flags)
{
	void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, flags | MAP_ANONYMOUS, -1, 0);
	if (memory == MAP_FAILED)
		exit(1);
	return memory;
}

ALONE uint64_t read_random(uint64_t x)
{
	if (read(random_fd, buffer, sizeof buffer) < 0)
		exit(1);
	return x + (uint64_t)buffer[0];
}

ALONE uint64_t touch_pages(uint64_t x)
{
	char *memory = map(FAULTS_SIZE, MAP_PRIVATE);
	for (unsigned i = 0; i < FAULTS_SIZE; i += PAGE)
		memory[i] = 1;
	munmap(memory, FAULTS_SIZE);
	return x + 1;
}

ALONE uint64_t ask_parent(uint64_t x)
{
	for (unsigned i = 0; i < 100; i++)
		x += (uint64_t)getppid();
	return x;
}

ALONE uint64_t nap_and_compute(uint64_t x)
{
	struct timespec time = {0, 50000};
	nanosleep(&time, NULL);
	UNITS(x, 10000)
	return x;
}

OUTSIDE static void open_random(void)
{
	random_fd = open("/dev/urandom", O_RDONLY);
	if (random_fd < 0)
		exit(1);
}

OUTSIDE static void once_each(struct part *parts, unsigned count, unsigned rounds)
{
	uint64_t x = 1;
	while (rounds--)
		for (unsigned i = 0; i < count; i++)
			x = timed(&parts[i], 1, x);
	sink = x;
}

OUTSIDE static void children(unsigned rounds)
{
	const struct part all[] = {{"compute_more", compute_more, 0},
	                           {"compute_little", compute_little, 0},
	                           {"touch_pages", touch_pages, 0},
	                           {"read_random", read_random, 0}};
	struct part *parts = map(sizeof all, MAP_SHARED);
	memcpy(parts, all, sizeof all);
	open_random();
	while (rounds--) {
		if (fork() == 0) {
			once_each(parts, 4, 10);
			exit(0);
		}
		wait(NULL);
	}
	tell(parts, 4);
}

static struct part of_threads[] = {{"compute", compute, 0},
                                   {"compute_little", compute_little, 0},
                                   {"compute_more", compute_more, 0},
                                   {"read_random", read_random, 0}};

OUTSIDE static void *three_times(void *unused)
{
	once_each(of_threads, 4, 3);
	return unused;
}

OUTSIDE static void brief(unsigned rounds)
{
	open_random();
	while (rounds--) {
		pthread_t thread;
		if (pthread_create(&thread, NULL, three_times, NULL) != 0)
			exit(1);
		pthread_join(thread, NULL);
	}
	tell(of_threads, 4);
}

OUTSIDE static void naps(unsigned rounds)
{
	struct part parts[] = {{"read_random", read_random, 0},
	                       {"nap_and_compute", nap_and_compute, 0},
	                       {"touch_pages", touch_pages, 0}};
	open_random();
	once_each(parts, 3, rounds);
	tell(parts, 3);
}

OUTSIDE static void loop(unsigned rounds)
{
	struct part parts[] = {{"compute", compute, 0},
	                       {"compute_little", compute_little, 0},
	                       {"compute_more", compute_more, 0},
	                       {"ask_parent", ask_parent, 0}};
	once_each(parts, 4, rounds);
	tell(parts, 4);
}

OUTSIDE static void step(unsigned rounds)
{
	struct part parts[] = {{"read_random", read_random, 0},
	                       {"compute_more", compute_more, 0},
	                       {"touch_pages", touch_pages, 0}};
	struct itimerspec each = {{0, 2000000}, {0, 2000000}};
	int timer = timerfd_create(CLOCK_MONOTONIC, 0);
	open_random();
	timerfd_settime(timer, 0, &each, NULL);
	while (rounds--) {
		uint64_t expirations;
		if (read(timer, &expirations, sizeof expirations) < 0)
			exit(1);
		once_each(parts, 3, 1);
	}
	tell(parts, 3);
}

SCENARIOS({"children", children}, {"brief", brief}, {"naps", naps}, {"loop", loop}, {"step", step})
