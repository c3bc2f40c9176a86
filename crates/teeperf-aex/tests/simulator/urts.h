// An untrusted runtime: what hosts call.
#pragma once
#include <stdint.h>

struct urts_settings {
	int is_debug, threads, frames, frame_pages, is_apart, is_inline;
};
struct urts_enclave;
typedef long urts_ocall(struct urts_enclave *, void *argument);

struct urts_enclave *urts_create(const char *file, struct urts_settings settings, urts_ocall *const *ocalls);
long urts_ecall(struct urts_enclave *, long index, void *argument);
// Does OCALLs of enclaves that were made without any; brought by who makes such.
long urts_ocall_of_number(long index, void *argument) __attribute__((weak));
void urts_destroy(struct urts_enclave *);
uint64_t urts_base(const struct urts_enclave *);
uint64_t urts_size(const struct urts_enclave *);
// Where its TCSs are, by number; null: there are no more.
void *urts_tcs(const struct urts_enclave *, int number);
