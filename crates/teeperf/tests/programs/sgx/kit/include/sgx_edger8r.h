/* Of Intel's SDK, as far as teeperf_intel.c uses it. */
#pragma once
typedef unsigned int sgx_status_t;
sgx_status_t sgx_ocall(const unsigned int index, void *ms);
