/* An I/O loop like that of a user-space driver's benchmark (SPDK's perf): commands are written into a ring in memory and taken
 * out again, without the kernel. Each asks for the process's id and for the time, as a driver does that checks for forks and
 * measures latencies: where that leaves an enclave, or goes into the kernel, it is what the time is spent on.
 *
 *   crossing [system|COST] [plain|cached] [COMMANDS]
 *
 * system: the id and the time are system calls. COST: they are emulated ways out of an enclave and back, of so many
 * nanoseconds, by a loop that waits for the clock. cached: the id is asked for once, the time once for 128 commands.
 *
 * It prints ios=COMMANDS iops=COMMANDS_A_SECOND crossings=HOW_OFTEN_IT_CROSSED sum=CHECKSUM. */
#define _GNU_SOURCE
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { RING = 256, DEPTH = 32, BLOCK = 512, REFRESH = 128 };

/* Not so much as a call more than needed: hooks are for the driver. */
#define PLAIN __attribute__((no_instrument_function, noinline))

struct command {
    uint64_t block, begun;
    unsigned char *data;
};

static struct command ring[RING];
static unsigned head, tail;
static unsigned char disk[RING][BLOCK], buffers[RING][BLOCK];
static long cost_ns = -1;
static int is_cached;
static uint64_t crossings, sum, latency;

PLAIN static uint64_t now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000000000ull + now.tv_nsec;
}

/* The way out and back, without what is done there. */
PLAIN static void wait_ns(long ns) {
    uint64_t end = now_ns() + ns;
    while (now_ns() < end) {}
}

/* A way out of an enclave, as the tools of SGX call it. */
static long ocall_getpid(void) {
    wait_ns(cost_ns);
    return getpid();
}

static uint64_t ocall_clock(void) {
    wait_ns(cost_ns);
    return now_ns();
}

static long process_id(void) { return getpid(); }

static uint64_t time_stamp(void) {
    struct timespec now;
    /* The kernel itself, and not the page that it lends the program. */
    syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000000000ull + now.tv_nsec;
}

static long driver_pid(void) {
    static long known;
    if (is_cached && known) return known;
    crossings++;
    return known = cost_ns < 0 ? process_id() : ocall_getpid();
}

static uint64_t driver_clock(void) {
    static uint64_t known;
    static unsigned used;
    if (is_cached && known && ++used % REFRESH) return known;
    crossings++;
    return known = cost_ns < 0 ? time_stamp() : ocall_clock();
}

static void submit(uint64_t block) {
    static long owner;
    long pid = driver_pid();
    if (owner && owner != pid) abort();
    owner = pid;
    struct command *command = &ring[head++ % RING];
    command->block = block;
    command->data = buffers[block % RING];
    command->begun = driver_clock();
}

/* What the device does. */
static void transfer(struct command *command) {
    memcpy(command->data, disk[command->block % RING], BLOCK);
}

static void complete(void) {
    struct command *command = &ring[tail++ % RING];
    transfer(command);
    for (int at = 0; at < BLOCK; at += 64) sum += command->data[at];
    latency += driver_clock() - command->begun;
}

int main(int count, char **words) {
    if (count > 1 && strcmp(words[1], "system")) cost_ns = atol(words[1]);
    is_cached = count > 2 && !strcmp(words[2], "cached");
    long commands = count > 3 ? atol(words[3]) : 1000000;
    for (int block = 0; block < RING; block++) memset(disk[block], block, BLOCK);
    uint64_t begun = now_ns(), random = 88172645463325252u;
    long done = 0, sent = 0;
    while (done < commands) {
        for (; sent < commands && head - tail < DEPTH; sent++) {
            random ^= random << 13, random ^= random >> 7, random ^= random << 17;
            submit(random >> 32);
        }
        complete();
        done++;
    }
    double seconds = (now_ns() - begun) / 1e9;
    printf("ios=%ld iops=%.0f crossings=%llu sum=%llu\n", done, done / seconds,
           (unsigned long long)crossings, (unsigned long long)sum);
    return 0;
}
