/* teeperf.h: what a program can say to the recording it is part of. Optional: a program is
 * traced without it.
 *
 * Everything here does nothing, at the cost of a test, when the program runs without the
 * recorder or was linked without teeperf: no library is needed for it. C89 and C++, gcc and clang.
 * Where TEEPERF_DISABLE is defined, and with other compilers, it is nothing at all: values that counters
 * are given are not even looked at.
 */
#ifndef TEEPERF_H
#define TEEPERF_H

#if defined TEEPERF_DISABLE || !defined __GNUC__

#ifdef __cplusplus
#define TEEPERF_INLINE inline
#elif defined __STDC_VERSION__ && __STDC_VERSION__ >= 199901L
#define TEEPERF_INLINE static inline
#elif defined __GNUC__
#define TEEPERF_INLINE static __inline__ __attribute__((unused))
#else
#define TEEPERF_INLINE static
#endif

TEEPERF_INLINE void teeperf_pause(void) {}
TEEPERF_INLINE void teeperf_resume(void) {}
TEEPERF_INLINE int teeperf_recording(void) { return 0; }
TEEPERF_INLINE void teeperf_note(const char *text) { (void)text; }
TEEPERF_INLINE void teeperf_stack_new(unsigned long long stack) { (void)stack; }
TEEPERF_INLINE void teeperf_stack_switch(unsigned long long left, unsigned long long entered)
{
	(void)left;
	(void)entered;
}
TEEPERF_INLINE void teeperf_stack_enter(unsigned long long stack) { (void)stack; }
TEEPERF_INLINE void teeperf_stack_end(unsigned long long stack) { (void)stack; }
TEEPERF_INLINE void teeperf_stack_memory(const void *low, unsigned long size)
{
	(void)low;
	(void)size;
}
TEEPERF_INLINE unsigned teeperf_version(void) { return 0; }

#define TEEPERF_SCOPE(name) ((void)0)
#define TEEPERF_BEGIN(variable, name) ((void)0)
#define TEEPERF_END(variable) ((void)0)
#define TEEPERF_MARK(name) ((void)0)
#define TEEPERF_COUNTER(name, value) ((void)sizeof(value))
#define TEEPERF_COUNTER_REAL(name, value) ((void)sizeof(value))

#else

#ifdef __cplusplus
extern "C" {
#define TEEPERF_INTEGER_(value) static_cast<unsigned long long>(static_cast<long long>(value))
#else
#define TEEPERF_INTEGER_(value) ((unsigned long long)(long long)(value))
#endif

/* The runtime's side; not to be called directly. */
extern void teeperf_rt_pause(void) __attribute__((weak));
extern void teeperf_rt_resume(void) __attribute__((weak));
extern int teeperf_rt_recording(void) __attribute__((weak));
extern void teeperf_rt_note(const char *text) __attribute__((weak));
extern void teeperf_rt_stack_switch(unsigned long long left, unsigned long long entered) __attribute__((weak));
extern void teeperf_rt_stack_new(unsigned long long stack) __attribute__((weak));
extern void teeperf_rt_stack_enter(unsigned long long stack) __attribute__((weak));
extern void teeperf_rt_stack_memory(const void *low, unsigned long size) __attribute__((weak));
extern unsigned teeperf_rt_version(void) __attribute__((weak));
extern void teeperf_rt_point(const void *site, unsigned kind, unsigned long long value) __attribute__((weak));
extern void teeperf_scope_enter(const void *site, const void *caller) __attribute__((weak));
extern void teeperf_scope_exit(const void *site, const void *caller) __attribute__((weak));

#define TEEPERF_INLINE static __inline__ __attribute__((unused, no_instrument_function))

#if defined __cplusplus && __cplusplus >= 201103L
#define TEEPERF_NOWHERE_ nullptr
#else
#define TEEPERF_NOWHERE_ 0
#endif

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

/* Coroutines that are not switched by ucontext or longjmp. Stacks that a few instructions switch are noticed by the stack
 * pointer (teeperf record --stacks); a runtime that says so by itself is believed, and nobody looks any more:
 *
 *	teeperf_stack_enter(id);          the thread goes on on another stack: before or behind each switch
 *	teeperf_stack_new(id);            the stack of this id begins anew and empty
 *	teeperf_stack_end(id);            it will not run again
 *
 * Or it says where stacks are, and the stack pointer tells the rest:
 *
 *	teeperf_stack_memory(low, size);  this memory is one stack, on which nothing runs yet
 *
 * Any number below 2^62 - 1 stands for a stack, such as its address; 0 is the thread's own. */

/* A stack begins anew and empty. */
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

/* The same, whichever stack the thread leaves. */
TEEPERF_INLINE void teeperf_stack_enter(unsigned long long stack)
{
	if (teeperf_rt_stack_enter)
		teeperf_rt_stack_enter(stack);
}

/* A stack on which no thread is will not run again: what is open on it is left for good. */
TEEPERF_INLINE void teeperf_stack_end(unsigned long long stack)
{
	teeperf_stack_new(stack);
}

/* Memory is one stack from here on, on which nothing is open. */
TEEPERF_INLINE void teeperf_stack_memory(const void *low, unsigned long size)
{
	if (teeperf_rt_stack_memory)
		teeperf_rt_stack_memory(low, size);
}

/* What follows has names, which are string literals without quotes, backslashes and percent signs. They stand in a part of
 * the file that is not loaded: to write a point takes no longer with a long name. (x86-64; elsewhere nothing is done.)
 *
 *	TEEPERF_SCOPE("parse");                      what follows in this block is a call of "parse"
 *	TEEPERF_BEGIN(load, "load"); ... TEEPERF_END(load);   what stands between is one
 *	TEEPERF_MARK("frame");                       a moment on the time line
 *	TEEPERF_COUNTER("queue", length);            the value of a counter, an integer, on the time line
 *	TEEPERF_COUNTER_REAL("load", 0.7);           likewise, a double
 *
 * Scopes stand in call paths and have calls and times as functions do; they can be filtered by name. */
#if defined __x86_64__ && defined __ELF__
#define TEEPERF_STRING_(line) #line
#define TEEPERF_LINE_(line) TEEPERF_STRING_(line)
/* An address of its own, and a note that says what it stands for (docs/format.md, section 8). */
#define TEEPERF_SITE_(site, name) \
	__asm__(".pushsection .text.teeperf_sites,\"ax\",@progbits\n" \
		".Lteeperf_site%=: nop\n" \
		".popsection\n" \
		".pushsection .note.teeperf,\"\",%%note\n" \
		".balign 4\n" \
		".long 2f - 1f, 4f - 3f, 1\n" \
		"1: .asciz \"TeePerf\"\n" \
		"2: .balign 4\n" \
		"3: .quad .Lteeperf_site%=\n" \
		".long " TEEPERF_LINE_(__LINE__) "\n" \
		".byte 0\n" \
		".asciz \"" name "\"\n" \
		".asciz \"\"\n" \
		".asciz \"" __FILE__ "\"\n" \
		"4: .balign 4\n" \
		".popsection\n" \
		"lea .Lteeperf_site%=(%%rip), %0" \
		: "=r"(site))
#else
#define TEEPERF_SITE_(site, name) ((site) = 0)
#endif

TEEPERF_INLINE void teeperf_enter_(const void *site)
{
	if (site && teeperf_scope_enter)
		teeperf_scope_enter(site, TEEPERF_NOWHERE_);
}

TEEPERF_INLINE void teeperf_leave_(const void *const *site)
{
	if (*site && teeperf_scope_exit)
		teeperf_scope_exit(*site, TEEPERF_NOWHERE_);
}

TEEPERF_INLINE void teeperf_point_(const void *site, unsigned kind, unsigned long long value)
{
	if (site && teeperf_rt_point)
		teeperf_rt_point(site, kind, value);
}

TEEPERF_INLINE unsigned long long teeperf_bits_(double value)
{
	unsigned long long bits;
	__builtin_memcpy(&bits, &value, sizeof bits);
	return bits;
}

#define TEEPERF_POINT_(name, kind, value) \
	do { \
		const void *teeperf_site_; \
		TEEPERF_SITE_(teeperf_site_, name); \
		teeperf_point_(teeperf_site_, kind, value); \
	} while (0)
#define TEEPERF_MARK(name) TEEPERF_POINT_(name, 0, 0)
#define TEEPERF_COUNTER(name, value) TEEPERF_POINT_(name, 1, TEEPERF_INTEGER_(value))
#define TEEPERF_COUNTER_REAL(name, value) TEEPERF_POINT_(name, 2, teeperf_bits_(value))

#define TEEPERF_BEGIN(variable, name) \
	const void *variable; \
	TEEPERF_SITE_(variable, name); \
	teeperf_enter_(variable)
#define TEEPERF_END(variable) teeperf_leave_(&(variable))

#define TEEPERF_JOINED_(a, b) a##b
#define TEEPERF_SCOPED_(name, number) TEEPERF_SCOPED__(name, TEEPERF_JOINED_(teeperf_scope_, number))
#define TEEPERF_SCOPED__(name, variable) \
	__attribute__((cleanup(teeperf_leave_))) const void *variable; \
	TEEPERF_SITE_(variable, name); \
	teeperf_enter_(variable)
#define TEEPERF_SCOPE(name) TEEPERF_SCOPED_(name, __COUNTER__)

/* Version of the runtime in the process, 0 where there is none. */
TEEPERF_INLINE unsigned teeperf_version(void)
{
	return teeperf_rt_version ? teeperf_rt_version() : 0;
}

#ifdef __cplusplus
}
#endif

#endif
#endif
