// A host of an enclave: `host ENCLAVE MODE NUMBER`. It counts its crossings and their time itself, and says what it has.
#include "enclave_u.h"
#include "teeperf_sgx_host.h"
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <sys/mman.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

extern "C" uint64_t urts_base(const void *enclave);
extern "C" uint64_t urts_size(const void *enclave);

static uint64_t enclave;
static std::atomic<long> ecalls, ocalls, ecall_ns, ocall_ns;
static enum { RETURNS, ENDS_THREAD, LEAPS, THROWS, FORKS, TOUCHES } way;
static jmp_buf back;
// An enclave whose work is another's checks it itself.
static bool keeps_seed;
// What enclaves with hooks do that leave without a word (hooked.c).
static long careless;

static long now()
{
	timespec time;
	clock_gettime(CLOCK_MONOTONIC, &time);
	return time.tv_sec * 1000000000 + time.tv_nsec;
}

static void check(bool is_right, const char *what)
{
	if (is_right)
		return;
	fprintf(stderr, "%s is wrong\n", what);
	exit(97);
}

enum proxy { WORK, OCALLS, SWITCHLESS };

// An ECALL with this memory. Whether the enclave took it.
static int make_with(enum proxy proxy, long rounds, long is_nested, void *arena, size_t bytes)
{
	struct call call = {};
	call.work.rounds = rounds;
	call.work.seed = 3;
	call.work.is_nested = is_nested;
	call.arena = arena;
	call.arena_bytes = bytes;
	ecalls++;
	errno = 77;
	long began = now();
	uint32_t status = 1;
	if (proxy == WORK)
		status = ecall_work(enclave, &call);
	else if (proxy == OCALLS)
		status = ecall_ocalls(enclave, &call);
	else
		status = ecall_ocalls_switchless(enclave, &call);
	ecall_ns += now() - began;
	check(status == 0 && (call.work.seed != 3 || keeps_seed), "the answer of an ECALL");
	check(errno == 77, "errno");
	return call.refused;
}

static void make(enum proxy proxy, long rounds, long is_nested)
{
	size_t bytes = 0;
	void *arena = teeperf_lent(&bytes);
	make_with(proxy, rounds, is_nested, arena, bytes);
}

int ocall_outside(struct work *)
{
	long began = now();
	ocalls++;
	struct timespec nap = { 0, 200000 };
	nanosleep(&nap, NULL);
	errno = 77;
	if (way == ENDS_THREAD)
		pthread_exit(NULL);
	if (way == LEAPS)
		longjmp(back, 1);
	if (way == THROWS)
		throw 5;
	if (way == TOUCHES) {
		size_t bytes = 1000 * 4096;
		void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		madvise(memory, bytes, MADV_NOHUGEPAGE);
		memset(memory, 1, bytes);
		munmap(memory, bytes);
	}
	if (way == FORKS) {
		pid_t child = fork();
		if (!child)
			_exit(3);
		int status;
		check(waitpid(child, &status, 0) == child && WEXITSTATUS(status) == 3, "a child");
		errno = 77;
	}
	ocall_ns += now() - began;
	return 5;
}

int ocall_nested(struct work *)
{
	long began = now();
	ocalls++;
	make(WORK, 1, careless);
	ocall_ns += now() - began;
	return 5;
}

static void *many(void *number)
{
	for (long i = 0; i < (long)number; i++) {
		make(WORK, 1, 0);
		make(OCALLS, 3, i % 2);
	}
	return NULL;
}

// Memory that no enclave should take, by what is wrong with it.
static void hostile(void)
{
	char *base = (char *)urts_base((void *)enclave);
	size_t size = urts_size((void *)enclave), bytes = 0, large = 1 << 20;
	char *arena = (char *)teeperf_lent(&bytes);
	static char nothing[1 << 20] __attribute__((aligned(4096)));
	const struct {
		const char *name;
		char *at;
		size_t bytes;
	} all[] = {
		{ "inside", base, large },
		{ "all", base, size },
		{ "begin", base - 4096, large },
		{ "end", base + size - 4096, large },
		{ "around", base - 4096, size + 8192 },
		{ "wraps", (char *)-4096l, large },
		{ "endless", base + size, (size_t)-1 & -4096ul },
		{ "null", NULL, large },
		{ "misaligned", arena + 4, bytes - 64 },
		{ "small", arena, 12287 },
		{ "unknown", nothing, sizeof(nothing) },
		{ "right", arena, bytes },
	};
	for (auto &one : all)
		printf("%s %d\n", one.name, -make_with(WORK, 1, 0, one.at, one.bytes));
}

static std::atomic<bool> ends;

static uint32_t random_number(uint32_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 17;
	*state ^= *state << 5;
	return *state;
}

// Mostly what steers: head, baton, clock, states; small numbers as often as any.
static void *scribble(void *memory)
{
	auto *words = (volatile uint32_t *)memory;
	uint32_t state = 4711;
	while (!ends) {
		uint32_t value = random_number(&state), place = random_number(&state) % (1 << 20);
		switch (random_number(&state) % 8) {
		case 0:
		case 1:
			place %= 512;
			break;
		case 2:
			place = 4096 + 1024 + place % 1024;
			value = 0;
			break;
		case 3:
			memcpy(memory, "TPARENA\x01", 8);
			place = 8;
			value = 1;
			break;
		}
		if (random_number(&state) % 3 == 0)
			value %= 16;
		// It does not wait for room: that is as long as the host likes. Nor is it paused or stopped all the time.
		if (place / 4 == 3 || (place / 4 == 33 && random_number(&state) % 64))
			continue;
		words[place / 4] = value;
	}
	return NULL;
}

// Memory with pages around it that nobody may touch; another thread writes into it all the time.
static void spoilt(long number)
{
	enum { AROUND = 1 << 20, BYTES = 1 << 20 };
	size_t bytes = 0;
	void *arena = teeperf_lent(&bytes);
	char *around = (char *)mmap(NULL, BYTES + 2 * AROUND, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	char *memory = around + AROUND;
	mprotect(memory, BYTES, PROT_READ | PROT_WRITE);
	memcpy(memory, arena, 4096);
	const uint32_t drops = 2;
	memcpy(memory + 12, &drops, 4);
	pthread_t thread;
	pthread_create(&thread, NULL, scribble, memory);
	long taken = 0;
	for (long i = 0; i < number; i++) {
		taken += make_with(WORK, 1, 0, memory, BYTES) == 0;
		taken += make_with(OCALLS, 1, 1, memory, BYTES) == 0;
	}
	ends = true;
	pthread_join(thread, NULL);
	printf("taken %ld\n", taken);
}

// ECALLs from other depths than those that were left.
__attribute__((noinline)) static void deeper(size_t bytes)
{
	volatile char *more = (volatile char *)__builtin_alloca(bytes);
	more[0] = 1;
	make(WORK, 1, 0);
	more[0] = 2;
}

static pthread_barrier_t all_there;

// One ECALL of a thread that stays until all have made one.
static void *crowd(void *)
{
	make(WORK, 1, 0);
	pthread_barrier_wait(&all_there);
	return NULL;
}

// The same, of one thread after the other, which a timer interrupts all the time.
static void *alarmed(void *)
{
	static pthread_mutex_t turn = PTHREAD_MUTEX_INITIALIZER;
	sigset_t alarm;
	sigemptyset(&alarm);
	sigaddset(&alarm, SIGALRM);
	pthread_mutex_lock(&turn);
	pthread_sigmask(SIG_UNBLOCK, &alarm, NULL);
	make(WORK, 1, 0);
	pthread_sigmask(SIG_BLOCK, &alarm, NULL);
	pthread_mutex_unlock(&turn);
	pthread_barrier_wait(&all_there);
	return NULL;
}

// So many threads at a time.
static void all_at_once(long number, void *(*each)(void *))
{
	pthread_t *all = new pthread_t[number];
	pthread_barrier_init(&all_there, NULL, number);
	for (long i = 0; i < number; i++)
		pthread_create(&all[i], NULL, each, NULL);
	for (long i = 0; i < number; i++)
		pthread_join(all[i], NULL);
	delete[] all;
}

static void wake(int) {}

// A timer of the host's own, whose handler asks that what it interrupts goes on.
static void set_alarm(long microseconds)
{
	struct sigaction action = {};
	action.sa_handler = wake;
	action.sa_flags = SA_RESTART;
	sigaction(SIGALRM, &action, NULL);
	sigset_t alarm;
	sigemptyset(&alarm);
	sigaddset(&alarm, SIGALRM);
	pthread_sigmask(SIG_BLOCK, &alarm, NULL);
	struct itimerval often = { { 0, microseconds }, { 0, microseconds } };
	setitimer(ITIMER_REAL, &often, NULL);
}

static void *once(void *)
{
	make(OCALLS, 1, 0);
	return NULL;
}

int main(int count, char **arguments)
{
	if (count < 4)
		return 2;
	const char *mode = arguments[2];
	keeps_seed = strstr(arguments[1], "zstd");
	// It is large, and there is not room for many stacks.
	if (keeps_seed)
		setenv("URTS_THREADS", "1", 1);
	if (sgx_create_enclave(arguments[1], 1, NULL, NULL, &enclave, NULL))
		return 2;
	long number = atol(arguments[3]);
	pthread_t threads[8];
	if (!strcmp(mode, "calls")) {
		many((void *)number);
	} else if (!strcmp(mode, "careless")) {
		careless = 2;
		for (long i = 0; i < number; i++)
			make(OCALLS, 1, 1 | careless);
	} else if (!strcmp(mode, "rounds")) {
		make(WORK, number, 0);
	} else if (!strcmp(mode, "threads")) {
		for (pthread_t &thread : threads)
			pthread_create(&thread, NULL, many, (void *)number);
		for (pthread_t thread : threads)
			pthread_join(thread, NULL);
	} else if (!strcmp(mode, "crowd")) {
		all_at_once(number, crowd);
	} else if (!strcmp(mode, "alarmed")) {
		set_alarm(50);
		all_at_once(number, alarmed);
	} else if (!strcmp(mode, "switchless")) {
		for (long i = 0; i < number; i++)
			make(SWITCHLESS, 1, 0);
	} else if (!strcmp(mode, "ends")) {
		way = ENDS_THREAD;
		for (long i = 0; i < number; i++) {
			pthread_create(&threads[0], NULL, once, NULL);
			pthread_join(threads[0], NULL);
		}
		way = RETURNS;
		many((void *)number);
	} else if (!strcmp(mode, "leaps")) {
		way = LEAPS;
		for (volatile long i = 0; i < number; i++)
			if (!setjmp(back))
				once(NULL);
			else
				deeper(16 * i);
		way = RETURNS;
		many((void *)number);
	} else if (!strcmp(mode, "throws")) {
		way = THROWS;
		for (long i = 0; i < number; i++)
			try {
				once(NULL);
			} catch (int value) {
				check(value == 5, "an exception");
			}
		way = RETURNS;
		many((void *)number);
	} else if (!strcmp(mode, "forks") || !strcmp(mode, "touches")) {
		way = mode[0] == 'f' ? FORKS : TOUCHES;
		for (long i = 0; i < number; i++)
			once(NULL);
	} else if (!strcmp(mode, "hostile"))
		hostile();
	else if (!strcmp(mode, "spoilt"))
		spoilt(number);
	printf("ecalls %ld\nocalls %ld\necall_ns %ld\nocall_ns %ld\n", ecalls.load(), ocalls.load(), ecall_ns.load(), ocall_ns.load());
	return 0;
}
