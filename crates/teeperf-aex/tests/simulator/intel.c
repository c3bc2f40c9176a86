// The untrusted runtime as Intel's SDK has it (sgx_urts.h, sgx_edger8r.h), of the parts that hosts of the tests use. An enclave's id is
// where it is. How many threads it has a real one's file says; here, the environment.
#include "urts.h"
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

struct table {
	size_t count;
	int (*bridges[])(void *);
};

// Of the innermost ECALL of this thread.
static __thread const struct table *ocalls;

long urts_ocall_of_number(long index, void *argument)
{
	return ocalls && (size_t)index < ocalls->count ? ocalls->bridges[index](argument) : -1;
}

uint32_t sgx_create_enclave(const char *file, int debug, void *token, int *updated, uint64_t *id, void *attributes)
{
	const char *threads = getenv("URTS_THREADS");
	struct urts_settings settings = { .is_debug = debug, .threads = threads ? atoi(threads) : 8, .frames = 2, .frame_pages = 1 };
	(void)token, (void)updated, (void)attributes;
	*id = (uint64_t)urts_create(file, settings, NULL);
	return 0;
}

static uint32_t ecall(uint64_t id, int index, const void *table, void *argument)
{
	const struct table *before = ocalls;
	ocalls = table;
	long result = urts_ecall((struct urts_enclave *)id, index, argument);
	ocalls = before;
	return result;
}

uint32_t sgx_ecall(uint64_t id, int index, const void *table, void *argument)
{
	return ecall(id, index, table, argument);
}

// As where no thread of the enclave's own is free.
uint32_t sgx_ecall_switchless(uint64_t id, int index, const void *table, void *argument)
{
	return ecall(id, index, table, argument);
}

uint32_t sgx_destroy_enclave(uint64_t id)
{
	urts_destroy((struct urts_enclave *)id);
	return 0;
}
