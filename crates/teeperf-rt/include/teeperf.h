/* teeperf.h: what a program can say to the recording it is part of. Optional: a program is
 * traced without it.
 *
 * Everything here does nothing, at the cost of a test, when the program runs without the
 * recorder or was linked without teeperf: no library is needed for it. C89 and C++, gcc and clang.
 */
#ifndef TEEPERF_H
#define TEEPERF_H

#ifdef __cplusplus
extern "C" {
#endif

/* The runtime's side; not to be called directly. */
extern void teeperf_rt_pause(void) __attribute__((weak));
extern void teeperf_rt_resume(void) __attribute__((weak));
extern int teeperf_rt_recording(void) __attribute__((weak));
extern void teeperf_rt_note(const char *text) __attribute__((weak));
extern void teeperf_rt_stack_switch(unsigned long long left, unsigned long long entered) __attribute__((weak));
extern void teeperf_rt_stack_new(unsigned long long stack) __attribute__((weak));
extern unsigned teeperf_rt_version(void) __attribute__((weak));

#define TEEPERF_INLINE static __inline__ __attribute__((unused, no_instrument_function))

/* Records nothing in any thread of this process until teeperf_resume(). Not for signal handlers. */
TEEPERF_INLINE void teeperf_pause(void)
{
	if (teeperf_rt_pause)
		teeperf_rt_pause();
}

TEEPERF_INLINE void teeperf_resume(void)
{
	if (teeperf_rt_resume)
		teeperf_rt_resume();
}

/* 1 while this process is recorded and not paused, else 0. */
TEEPERF_INLINE int teeperf_recording(void)
{
	return teeperf_rt_recording ? teeperf_rt_recording() : 0;
}

/* Puts a text of up to 1536 bytes on the calling thread's time line. */
TEEPERF_INLINE void teeperf_note(const char *text)
{
	if (teeperf_rt_note)
		teeperf_rt_note(text);
}

/* For coroutines of the program's own making: a stack begins anew and empty. Any number below
 * 2^62 - 1 stands for a stack, such as its address; 0 is the thread's own. */
TEEPERF_INLINE void teeperf_stack_new(unsigned long long stack)
{
	if (teeperf_rt_stack_new)
		teeperf_rt_stack_new(stack);
}

/* The calling thread goes on on another stack. */
TEEPERF_INLINE void teeperf_stack_switch(unsigned long long left, unsigned long long entered)
{
	if (teeperf_rt_stack_switch)
		teeperf_rt_stack_switch(left, entered);
}

/* Version of the runtime in the process, 0 where there is none. */
TEEPERF_INLINE unsigned teeperf_version(void)
{
	return teeperf_rt_version ? teeperf_rt_version() : 0;
}

#ifdef __cplusplus
}
#endif
#endif
