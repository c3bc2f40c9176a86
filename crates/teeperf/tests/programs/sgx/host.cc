// A host of an enclave: `host ENCLAVE MODE NUMBER`. It counts its crossings and their time itself, and says what it has.
#include "enclave_u.h"
#include <pthread.h>
#include <setjmp.h>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <sys/wait.h>
#include <unistd.h>

extern "C" __attribute__((weak)) void *teeperf_sgx_arena(size_t *bytes);

static uint64_t enclave;
static std::atomic<long> ecalls, ocalls, ecall_ns, ocall_ns;
static enum { RETURNS, ENDS_THREAD, LEAPS, THROWS, FORKS } way;
static jmp_buf back;

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

static long make(enum proxy proxy, long rounds, long is_nested)
{
	struct call call = {};
	call.work.rounds = rounds;
	call.work.seed = 3;
	call.work.is_nested = is_nested;
	if (teeperf_sgx_arena)
		call.arena = teeperf_sgx_arena(&call.arena_bytes);
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
	check(status == 0 && call.work.seed != 3, "the answer of an ECALL");
	check(errno == 77, "errno");
	return call.work.seed;
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
	make(WORK, 1, 0);
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

static void *once(void *)
{
	make(OCALLS, 1, 0);
	return NULL;
}

int main(int count, char **arguments)
{
	if (count < 4 || sgx_create_enclave(arguments[1], 1, NULL, NULL, &enclave, NULL))
		return 2;
	const char *mode = arguments[2];
	long number = atol(arguments[3]);
	pthread_t threads[8];
	if (!strcmp(mode, "calls")) {
		many((void *)number);
	} else if (!strcmp(mode, "threads")) {
		for (pthread_t &thread : threads)
			pthread_create(&thread, NULL, many, (void *)number);
		for (pthread_t thread : threads)
			pthread_join(thread, NULL);
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
	} else if (!strcmp(mode, "forks")) {
		way = FORKS;
		for (long i = 0; i < number; i++)
			once(NULL);
	}
	printf("ecalls %ld\nocalls %ld\necall_ns %ld\nocall_ns %ld\n", ecalls.load(), ocalls.load(), ecall_ns.load(), ocall_ns.load());
	return 0;
}
