/* teeperf_sgx.h: hooks in an SGX enclave. What an enclave calls of teeperf_sgx.c, and what it brings: with Intel's SDK
 * teeperf_intel.c does both. See README.md in integrations/sgx of the project.
 */
#ifndef TEEPERF_SGX_H
#define TEEPERF_SGX_H

#include <teeperf_tee.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What is kept for each thread inside. Zeroed at first. */
struct teeperf_sgx_thread {
	uint64_t recording[TEEPERF_THREAD / sizeof(uint64_t)];
	/* The memory that is attached, as it was handed over; a null pointer: none. */
	void *arena;
	size_t bytes;
};

#ifdef TEEPERF_DISABLE

TEEPERF_TEE_INLINE int teeperf_sgx_enter(void *untrusted_arena, size_t bytes)
{
	(void)untrusted_arena;
	(void)bytes;
	return TEEPERF_FORBIDDEN;
}

TEEPERF_TEE_INLINE void teeperf_sgx_leave(void)
{
}

#else

/* At the beginning of an ECALL, with the memory that the host has lent with it: what teeperf_sgx_arena() of its preloaded
 * library gives the calling thread. 0, or why the memory is not taken: one of the reasons of teeperf_tee.h. It may be any
 * address: one that is not wholly outside is refused before anything is read there. */
int teeperf_sgx_enter(void *untrusted_arena, size_t bytes);

/* At its end, whether it was taken or not. */
void teeperf_sgx_leave(void);

/* What an OCALL leaves behind. */
struct teeperf_sgx_away {
	void *arena;
	size_t bytes;
};

/* Around each OCALL: meanwhile the host writes, and may make ECALLs. */
void teeperf_sgx_goes_out(struct teeperf_sgx_away *away);
void teeperf_sgx_comes_back(const struct teeperf_sgx_away *away);

/* To be brought, beside teeperf_port_is_outside(): the calling thread's own, the same one until its outermost ECALL returns; a
 * null pointer: it is not recorded. Without hooks. */
struct teeperf_sgx_thread *teeperf_sgx_thread(void);

#endif

#ifdef __cplusplus
}
#endif
#endif
