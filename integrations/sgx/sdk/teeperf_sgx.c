/* Hooks in an SGX enclave, whatever its SDK: memory is attached for the time that a thread is inside. No system call, no
 * cpuid, no rdtsc: time is the word that the recorder moves in that memory. What lies there is the host's to change at any
 * time; so the address and the length are kept inside, and all else is the library's to distrust.
 */
#include "teeperf_sgx.h"

#define NO_HOOK __attribute__((no_instrument_function))

NO_HOOK void *teeperf_port_thread(void)
{
	struct teeperf_sgx_thread *own = teeperf_sgx_thread();

	return own ? own->recording : NULL;
}

static NO_HOOK int attach(void *arena, size_t bytes)
{
	struct teeperf_sgx_thread *own = teeperf_sgx_thread();
	int refused = TEEPERF_ATTACHED;

	if (!own)
		return refused;
	refused = teeperf_attach(arena, bytes);
	own->arena = refused ? NULL : arena;
	own->bytes = bytes;
	return refused;
}

static NO_HOOK void detach(void)
{
	struct teeperf_sgx_thread *own = teeperf_sgx_thread();

	if (!own || !own->arena)
		return;
	teeperf_detach();
	own->arena = NULL;
}

NO_HOOK int teeperf_sgx_enter(void *untrusted_arena, size_t bytes)
{
	return attach(untrusted_arena, bytes);
}

NO_HOOK void teeperf_sgx_leave(void)
{
	detach();
}

NO_HOOK void teeperf_sgx_goes_out(struct teeperf_sgx_away *away)
{
	struct teeperf_sgx_thread *own = teeperf_sgx_thread();

	away->arena = own ? own->arena : NULL;
	away->bytes = own ? own->bytes : 0;
	detach();
}

NO_HOOK void teeperf_sgx_comes_back(const struct teeperf_sgx_away *away)
{
	/* Refused, where the host has spoilt it meanwhile: the enclave goes on without. */
	if (away->arena)
		attach(away->arena, away->bytes);
}
