// A program with enclaves. `host ENCLAVE KEY=NUMBER...`; it prints where enclaves are, and that all came out right.
#define _GNU_SOURCE
#include "calls.h"
#include "urts.h"
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static long option(char **arguments, const char *key, long missing)
{
	for (; *arguments; arguments++)
		if (!strncmp(*arguments, key, strlen(key)) && (*arguments)[strlen(key)] == '=')
			return atol(*arguments + strlen(key) + 1);
	return missing;
}

static volatile unsigned long sink;

// The work of 100 steps of the enclave's, outside.
__attribute__((noinline)) static void outside_work(void)
{
	unsigned long seed = 9;
	for (long i = 0; i < 100 * 400; i++) {
		seed ^= seed << 13;
		seed ^= seed >> 7;
		seed ^= seed << 17;
		__asm__ volatile("" : "+r"(seed));
	}
	sink = seed;
}

static long outside(struct urts_enclave *enclave, void *argument)
{
	(void)enclave, (void)argument;
	outside_work();
	return 5;
}

static long nested(struct urts_enclave *enclave, void *argument)
{
	struct work inner = { .rounds = 1, .seed = 3 };
	(void)argument;
	return urts_ecall(enclave, ECALL_WORK, &inner) == 0 && inner.seed != 3 ? 5 : 0;
}

static urts_ocall *const OCALLS[] = { outside, nested };

struct task {
	struct urts_enclave *enclave;
	long call, rounds, is_nested, times, expected;
};

static void *run(void *argument)
{
	struct task *task = argument;
	for (long i = 0; i < task->times; i++) {
		struct work work = { task->rounds, 1, task->is_nested };
		long result = urts_ecall(task->enclave, task->call, &work);
		if (result != task->expected) {
			fprintf(stderr, "an ECALL came back with %ld\n", result);
			exit(97);
		}
	}
	return NULL;
}

int main(int count, char **arguments)
{
	if (count < 2)
		return 2;
	struct urts_settings settings = {
		.is_debug = option(arguments, "debug", 1), .threads = option(arguments, "tcs", 2), .frames = 2,
		.frame_pages = option(arguments, "frame", 1), .is_apart = option(arguments, "apart", 0),
		.is_inline = getenv("MACHINE_INLINE") != NULL,
	};
	long threads = option(arguments, "threads", 1);
	for (long life = option(arguments, "lives", 1); life > 0; life--) {
		struct urts_enclave *enclave = urts_create(arguments[1], settings, OCALLS);
		printf("enclave %lx %lx\n", urts_base(enclave), urts_size(enclave));
		for (int i = 0; urts_tcs(enclave, i); i++)
			printf("tcs %lx\n", (unsigned long)urts_tcs(enclave, i));
		fflush(stdout);
		struct task task = {
			enclave, option(arguments, "call", ECALL_WORK), option(arguments, "rounds", 1000),
			option(arguments, "nested", 0), option(arguments, "times", 1), 0,
		};
		if (task.call == ECALL_FLOATS) {
			double sum = 0, term = 1;
			for (long i = 1; i < task.rounds * 1000; i++) {
				term = -term;
				sum += term / (2 * i - 1);
			}
			task.expected = (long)(sum * -4000000);
		}
		pthread_t others[16];
		for (long i = 1; i < threads; i++)
			pthread_create(&others[i], NULL, run, &task);
		if (option(arguments, "fork", 0)) {
			pid_t child = fork();
			if (!child) {
				outside_work();
				_exit(3);
			}
			int status;
			if (waitpid(child, &status, 0) != child || !WIFEXITED(status) || WEXITSTATUS(status) != 3)
				return 96;
		}
		run(&task);
		for (long i = 1; i < threads; i++)
			pthread_join(others[i], NULL);
		urts_destroy(enclave);
	}
	puts("done");
	return 0;
}
