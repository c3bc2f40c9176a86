#include <sgx_edger8r.h>
#include <teeperf_sgx.h>

sgx_status_t ocall_print(void);
int ecall_work(void *lent, size_t bytes);

static __attribute__((noinline)) int work(int number)
{
	return (int)ocall_print() + number;
}

__attribute__((no_instrument_function)) int ecall_work(void *lent, size_t bytes)
{
	int refused = teeperf_sgx_enter(lent, bytes);
	int result = work(refused);

	teeperf_sgx_leave();
	return result;
}
