#include "enclave_u.h"

static int enclave_ocall_outside(void *argument) { return ocall_outside(argument); }
static int enclave_ocall_nested(void *argument) { return ocall_nested(argument); }

static const struct {
	size_t nr_ocall;
	void *table[2];
} ocall_table_enclave = { 2, { (void *)enclave_ocall_outside, (void *)enclave_ocall_nested } };

// The last thing that it does is a call, which is a jump where the compiler optimises.
uint32_t ecall_work(uint64_t enclave, struct call *call)
{
	return sgx_ecall(enclave, ECALL_WORK, &ocall_table_enclave, call);
}

uint32_t ecall_ocalls(uint64_t enclave, struct call *call)
{
	uint32_t status = sgx_ecall(enclave, ECALL_OCALLS, &ocall_table_enclave, call);
	__asm__ volatile("" : "+r"(status));
	return status;
}

uint32_t ecall_ocalls_switchless(uint64_t enclave, struct call *call)
{
	return sgx_ecall_switchless(enclave, ECALL_OCALLS, &ocall_table_enclave, call);
}
