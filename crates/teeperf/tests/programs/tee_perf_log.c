/* Writes a log as the original TEE-Perf does: linked with a program built with -finstrument-functions. The file is
   TEE_PERF_LOG, of TEE_PERF_SIZE bytes and one more; with TEE_PERF_THREADS entries have the thread's id. A thread counts
   as fast as it can, in the host's place; entries count as well, so that time passes even where it gets no processor.
   tee_perf_switch() switches recording off and on. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#define HIDDEN __attribute__((no_instrument_function))
#define ACTIVE ((uint64_t)1 << 31)
#define THREADS ((uint64_t)1 << 16)

static struct header {
	uint64_t counter, flags, self, pid, size, begun, map_info;
} *head;

static uint64_t entry_numbers = 2;

HIDDEN static void *count(void *nothing)
{
	for (;;)
		__atomic_fetch_add(&head->counter, 1, __ATOMIC_RELAXED);
	return nothing;
}

HIDDEN __attribute__((constructor(101))) static void __profiler_map_info(void)
{
	const char *path = getenv("TEE_PERF_LOG"), *size = getenv("TEE_PERF_SIZE");
	if (!path || !size)
		return;
	uint64_t bytes = strtoull(size, 0, 0);
	int file = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
	if (file < 0 || ftruncate(file, bytes + 1))
		_exit(90);
	struct header *map = mmap(0, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
	if (map == MAP_FAILED)
		_exit(91);
	close(file);
	map->self = (uint64_t)map;
	map->pid = getpid();
	map->size = bytes;
	map->map_info = (uint64_t)&__profiler_map_info;
	map->flags = 1 | ACTIVE;
	if (getenv("TEE_PERF_THREADS")) {
		map->flags |= THREADS;
		entry_numbers = 3;
	}
	head = map;
	pthread_t counter;
	if (pthread_create(&counter, 0, count, 0))
		_exit(92);
	while (!__atomic_load_n(&map->counter, __ATOMIC_RELAXED))
		;
}

HIDDEN static void write_entry(uint64_t address, uint64_t top, int with_thread)
{
	struct header *map = head;
	if (!map)
		return;
	uint64_t at = __atomic_fetch_add(&map->begun, 1, __ATOMIC_RELAXED);
	if (sizeof *map + (at + 1) * entry_numbers * 8 > map->size)
		return;
	uint64_t *entry = (uint64_t *)(map + 1) + at * entry_numbers;
	entry[0] = __atomic_add_fetch(&map->counter, 1, __ATOMIC_RELAXED) | top << 63;
	entry[1] = address;
	if (entry_numbers == 3)
		entry[2] = with_thread ? (uint64_t)pthread_self() : 0;
}

HIDDEN void __cyg_profile_func_enter(void *function, void *site)
{
	(void)site;
	if (head && head->flags & ACTIVE)
		write_entry((uint64_t)function, 0, 1);
}

HIDDEN void __cyg_profile_func_exit(void *function, void *site)
{
	(void)site;
	if (head && head->flags & ACTIVE)
		write_entry((uint64_t)function, 1, 1);
}

HIDDEN void tee_perf_switch(int on)
{
	if (!head)
		return;
	/* However busy the machine is, it was off for longer than it was on. */
	if (on)
		__atomic_fetch_add(&head->counter, 1000000, __ATOMIC_RELAXED);
	write_entry(0, on, 0);
	if (on)
		head->flags |= ACTIVE;
	else
		head->flags &= ~ACTIVE;
}
