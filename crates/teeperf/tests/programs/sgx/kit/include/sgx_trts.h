/* Of Intel's SDK, as far as teeperf_intel.c uses it. */
#pragma once
#include <stddef.h>
int sgx_is_outside_enclave(const void *addr, size_t size);
