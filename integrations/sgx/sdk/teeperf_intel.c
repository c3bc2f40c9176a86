/* Linked into an enclave of Intel's SDK by teeperf.mk: what teeperf_sgx.c asks for, and the way out of the enclave, which is wrapped
 * (--wrap=sgx_ocall of GNU ld): every OCALL that edger8r makes goes through sgx_ocall.
 */
#include <sgx_edger8r.h>
#include <sgx_trts.h>

#include "teeperf_sgx.h"

#define NO_HOOK __attribute__((no_instrument_function))

/* The SDK zeroes it for each outermost ECALL where threads take any TCS (TCSPolicy 1): nothing in it has to stay. */
static __thread struct teeperf_sgx_thread own;

NO_HOOK struct teeperf_sgx_thread *teeperf_sgx_thread(void)
{
	return &own;
}

NO_HOOK int teeperf_port_is_outside(const void *start, size_t length)
{
	return start && length && sgx_is_outside_enclave(start, length);
}

#ifdef TEEPERF_ENCLAVE
/* The file with the symbols, as readers look for it. */
NO_HOOK const char *teeperf_port_name(void)
{
	return TEEPERF_ENCLAVE;
}
#endif

sgx_status_t __real_sgx_ocall(const unsigned int index, void *ms);
sgx_status_t __wrap_sgx_ocall(const unsigned int index, void *ms);

NO_HOOK sgx_status_t __wrap_sgx_ocall(const unsigned int index, void *ms)
{
	struct teeperf_sgx_away away;
	sgx_status_t status;

	teeperf_sgx_goes_out(&away);
	status = __real_sgx_ocall(index, ms);
	teeperf_sgx_comes_back(&away);
	return status;
}
