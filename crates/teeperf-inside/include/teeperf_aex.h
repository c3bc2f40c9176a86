/* For runtimes of SGX enclaves that handle asynchronous exits themselves. `teeperf record --sgx` samples threads by timers without
 * any of this: who calls it adds samples where it knows better, as an AEX-Notify handler or a scheduler of its own does. */
#ifndef TEEPERF_AEX_H
#define TEEPERF_AEX_H

#ifdef __cplusplus
extern "C" {
#endif

/* Takes a sample of the calling thread inside the enclave that it has left asynchronously, and before it resumes there: by the address
 * of its TCS. The sample stands for the processor time since the thread's sample before, whoever took that.
 *
 * 0: it was taken. -1: nobody records, or the thread is not sampled. Not for signal handlers of other signals while this runs.
 *
 * The library is preloaded by the recorder, so the symbol is weak: without one the address is null. */
int teeperf_aex_sample(const void *tcs) __attribute__((weak));

#ifdef __cplusplus
}
#endif

#endif
