/* teeperf_sgx_host.h: for the host of an enclave with hooks. `teeperf record --sgx` preloads a library into it that has memory for each of
 * its threads; without, there is none, and enclaves run as they would.
 */
#ifndef TEEPERF_SGX_HOST_H
#define TEEPERF_SGX_HOST_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The preloaded library's; not to be called directly. */
void *teeperf_sgx_arena(size_t *bytes) __attribute__((weak));

/* The calling thread's memory, to be handed over with an ECALL, and how many bytes it has; a null pointer: none. It stays the same
 * as long as the thread lives. */
static __inline__ __attribute__((unused, no_instrument_function)) void *teeperf_lent(size_t *bytes)
{
	*bytes = 0;
	return teeperf_sgx_arena ? teeperf_sgx_arena(bytes) : NULL;
}

#ifdef __cplusplus
}
#endif
#endif
