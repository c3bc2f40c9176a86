// What edger8r makes of an enclave's interface, for its host: one function for each ECALL; and what the host has for OCALLs.
#pragma once
#include "call.h"
#include <stdint.h>
#ifdef __cplusplus
extern "C" {
#endif
uint32_t ecall_work(uint64_t enclave, struct call *);
uint32_t ecall_ocalls(uint64_t enclave, struct call *);
uint32_t ecall_ocalls_switchless(uint64_t enclave, struct call *);
int ocall_outside(struct work *);
int ocall_nested(struct work *);

uint32_t sgx_create_enclave(const char *file, int debug, void *token, int *updated, uint64_t *id, void *attributes);
uint32_t sgx_destroy_enclave(uint64_t id);
uint32_t sgx_ecall(uint64_t id, int index, const void *table, void *argument);
uint32_t sgx_ecall_switchless(uint64_t id, int index, const void *table, void *argument);
#ifdef __cplusplus
}
#endif
