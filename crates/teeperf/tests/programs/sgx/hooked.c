// What makes a simulated enclave one with hooks: what the SDK of a real one has in its way in and its ways out (--wrap of GNU ld).
#include <teeperf_sgx.h>

#include "call.h"

enum { STACK = 64 * 4096, THREADS = 16, CANARIES = 4096 };
#define NO_HOOK __attribute__((no_instrument_function))

// The enclave begins with its file, and has the size that the runtime gives all.
extern char __ehdr_start __attribute__((visibility("hidden")));
#define SIZE (4ul << 20)

static unsigned char before[CANARIES];
static struct {
	char *tcs;
	struct teeperf_sgx_thread own;
} threads[THREADS];
static unsigned char behind[CANARIES];

// A thread is known by its stack, which lies below its TCS.
NO_HOOK struct teeperf_sgx_thread *teeperf_sgx_thread(void)
{
	char *here = __builtin_frame_address(0);
	for (int i = 0; i < THREADS; i++) {
		char *tcs = __atomic_load_n(&threads[i].tcs, __ATOMIC_ACQUIRE);
		if (tcs && here < tcs && here >= tcs - STACK)
			return &threads[i].own;
	}
	return 0;
}

static NO_HOOK void know(char *tcs)
{
	for (int i = 0; i < THREADS; i++) {
		char *nobody = 0;
		if (__atomic_compare_exchange_n(&threads[i].tcs, &nobody, tcs, 0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE) || nobody == tcs)
			return;
	}
}

NO_HOOK int teeperf_port_is_outside(const void *start, size_t length)
{
	return teeperf_is_outside(start, length, &__ehdr_start, SIZE);
}

NO_HOOK const char *teeperf_port_name(void)
{
	return ENCLAVE;
}

// What ECALLs do besides that are asked to leave without a word: a call that does not return, and memory that stays attached.
#define CARELESS 2
extern unsigned long half(unsigned long seed) __attribute__((weak));
extern void __cyg_profile_func_enter(void *function, void *site);

extern long __real_ecall(long index, void *argument, void *tcs);
extern long __real_ocall(long index, void *argument, void *tcs);

NO_HOOK long __wrap_ecall(long index, void *argument, void *tcs)
{
	struct call *call = argument;
	know(tcs);
	int refused = teeperf_sgx_enter(call->arena, call->arena_bytes);
	int is_careless = call->work.is_nested & CARELESS;
	call->work.is_nested &= ~CARELESS;
	if (is_careless)
		__cyg_profile_func_enter(half, 0);
	long result = __real_ecall(index, argument, tcs);
	if (!is_careless)
		teeperf_sgx_leave();
	call->refused = refused;
	for (int i = 0; i < CANARIES; i++)
		if (before[i] || behind[i])
			return -9;
	return result;
}

NO_HOOK long __wrap_ocall(long index, void *argument, void *tcs)
{
	struct teeperf_sgx_away away;
	teeperf_sgx_goes_out(&away);
	long result = __real_ocall(index, argument, tcs);
	teeperf_sgx_comes_back(&away);
	return result;
}
