/* teeperf_tee.h: records code that has no system of its own: trusted applications, enclaves,
 * bare-metal images. Link with libteeperf_tee.a; compile the code with -finstrument-functions, but
 * not the functions named teeperf_port_... below.
 *
 * The host lends memory (`teeperf serve-memory`), by whatever the platform has for that, and the code
 * inside attaches it:
 *
 *     #include <teeperf_tee.h>
 *
 *     int enter(void *shared, size_t length)
 *     {
 *         int refused = teeperf_attach(shared, length);
 *         if (refused)
 *             return refused;
 *         work();
 *         teeperf_detach();
 *         return 0;
 *     }
 *
 * Where there is no such memory, code sums its calls in its own (teeperf_port_tree(), teeperf_port_arcs()), and
 * teeperf_take() hands that over in pieces, for which any way out will do; `teeperf import` makes a recording
 * of them:
 *
 *     size_t ecall_take(void *out, size_t length)
 *     {
 *         return teeperf_take(out, length);
 *     }
 *
 * A recording tells the host which way the code went. So a build with NDEBUG refuses to attach, and hands nothing
 * over, unless TEEPERF_PERMIT is defined. C99 and C++, gcc and clang. Step by step: docs/porting.md.
 */
#ifndef TEEPERF_TEE_H
#define TEEPERF_TEE_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Why teeperf_attach() takes no memory. */
#define TEEPERF_FORBIDDEN (-1)  /* a build with NDEBUG and without TEEPERF_PERMIT */
#define TEEPERF_MISALIGNED (-2) /* a null pointer, or not at a multiple of 64 */
#define TEEPERF_TOO_SMALL (-3)  /* less than TEEPERF_LEAST bytes */
#define TEEPERF_INSIDE (-4)     /* some of it is the trusted side's own: teeperf_port_is_outside() */
#define TEEPERF_UNKNOWN (-5)    /* no host has laid it out, or another version of teeperf */
#define TEEPERF_NO_CLOCK (-6)   /* the host wants a counter that teeperf_port_counter() has not */
#define TEEPERF_ATTACHED (-7)   /* there is some attached already */

/* Least length of the memory. */
#define TEEPERF_LEAST 12288

/* Bytes of a thread's own memory, at a multiple of 8: teeperf_port_thread(). */
#define TEEPERF_THREAD 512

/* Least length of a buffer for teeperf_take(), and for teeperf_take_line(). */
#define TEEPERF_TAKE_LEAST 256
#define TEEPERF_TAKE_LINE_LEAST (2 * TEEPERF_TAKE_LEAST + 9)

#if !defined(NDEBUG) || defined(TEEPERF_PERMIT)
#define TEEPERF_IS_PERMITTED 1
#else
#define TEEPERF_IS_PERMITTED 0
#endif

#define TEEPERF_TEE_INLINE static __inline__ __attribute__((unused, no_instrument_function))

/* The library's side; not to be called directly. */
int teeperf_tee_attach(void *base, size_t length, int is_permitted);
void teeperf_tee_detach(void);
void teeperf_tee_end_thread(void);
int teeperf_tee_recording(void);
int teeperf_tee_is_outside(uintptr_t start, size_t length, uintptr_t base, size_t size);
size_t teeperf_tee_take(void *buffer, size_t length, int is_permitted);

/* Records into this memory until teeperf_detach(); 0, or why not. It may be there at another address
 * each time: recording goes on where it ended. In a library for threads, one of them attaches for all; in one for threads apart, each for
 * itself, and what it has attached before is let go without a word. */
TEEPERF_TEE_INLINE int teeperf_attach(void *base, size_t length)
{
	return teeperf_tee_attach(base, length, TEEPERF_IS_PERMITTED);
}

/* Touches the memory no more. In a library for threads: no other thread may be within hooked code then.
 * Never from a signal handler or an interrupt. */
TEEPERF_TEE_INLINE void teeperf_detach(void)
{
	teeperf_tee_detach();
}

/* The calling thread ends, and calls no hooked function any more: the host gets what it has written, and others
 * get its room. Where there is one thread only, it does nothing. */
TEEPERF_TEE_INLINE void teeperf_end_thread(void)
{
	teeperf_tee_end_thread();
}

/* 1 while calls are recorded, else 0. */
TEEPERF_TEE_INLINE int teeperf_recording(void)
{
	return teeperf_tee_recording();
}

/* Writes the next piece of what was summed and not handed over yet, and returns its bytes; 0 when nothing is left, or
 * the buffer has less than TEEPERF_TAKE_LEAST bytes. To be called until it returns 0: what is called meanwhile may be
 * in the pieces, or waits for the next time. What was taken counts as handed over, wherever it goes. The buffer may
 * lie anywhere, and be seen by others. In a library for threads each thread takes its own. Never from a signal
 * handler or an interrupt.
 *
 * Pieces, one behind the other in a file, are what `teeperf import` reads. */
TEEPERF_TEE_INLINE size_t teeperf_take(void *buffer, size_t length)
{
	return teeperf_tee_take(buffer, length, TEEPERF_IS_PERMITTED);
}

/* Likewise, as a line of text without its end, for a console: `teeperf import` finds such lines among others. Returns
 * its length without the 0 behind it.
 *
 *     static char line[1024];
 *     while (teeperf_take_line(line, sizeof(line)))
 *         puts(line);
 */
TEEPERF_TEE_INLINE size_t teeperf_take_line(char *line, size_t length)
{
	static const char mark[] = "teeperf:";
	size_t before = sizeof(mark) - 1, room = 0, taken = 0, i = 0;
	unsigned char *piece = NULL, byte = 0;

	if (length < TEEPERF_TAKE_LINE_LEAST)
		return 0;
	/* At the end, from where each byte goes before its digits get there. */
	room = (length - before - 1) / 2;
	piece = (unsigned char *)line + length - room;
	taken = teeperf_take(piece, room);
	if (!taken)
		return 0;
	for (i = 0; i < before; i++)
		line[i] = mark[i];
	for (i = 0; i < taken; i++) {
		byte = piece[i];
		line[before + 2 * i] = "0123456789abcdef"[byte >> 4];
		line[before + 2 * i + 1] = "0123456789abcdef"[byte & 15];
	}
	line[before + 2 * taken] = 0;
	return before + 2 * taken;
}

/* 1 if all of this memory lies outside of `size` bytes at `base`, which are the trusted side's own: an enclave's
 * range, for teeperf_port_is_outside(). A null pointer, nothing, and what does not end within the address space do
 * not. */
TEEPERF_TEE_INLINE int teeperf_is_outside(const void *start, size_t length, const void *base, size_t size)
{
	return teeperf_tee_is_outside((uintptr_t)start, length, (uintptr_t)base, size);
}

/* What the image itself may bring, where the library's own does not do. */

/* 1 if all of this memory is the host's, and none of it the trusted side's own. The library's takes the
 * caller's word for it. */
int teeperf_port_is_outside(const void *start, size_t length);

/* A short rest, of a millisecond or so, while the host frees memory; returns for how many microseconds it was, 0 if
 * it was none. The library's is none. */
uint32_t teeperf_port_pause(void);

/* A counter that runs at a steady rate, such as cntvct_el0; 0 where there is none, as the library's says. Where it is
 * not the host's own, `teeperf serve-memory --clock cycle --counter-hz` is told its rate. */
uint64_t teeperf_port_counter(void);

/* How much that counts in a second, such as cntfrq_el0; 0 where it is not known, as the library says: then `teeperf
 * import --hz` is told. */
uint64_t teeperf_port_counter_hz(void);

/* Name of the image's file, up to 1200 bytes: readers look for its symbols by it. The library's is empty. */
const char *teeperf_port_name(void);

/* Memory of the trusted side's own, zeroed, at a multiple of 8, in which calls and times are summed by call path
 * while no events can be written: some 100 bytes a path. What is summed is handed over with the next events, or by
 * teeperf_take(). While nothing is attached, time goes on by the counter, where there is one and no recording had
 * another clock; else it stands. The library's is a null pointer: what is called while nothing is attached is not
 * recorded. Not asked for by a library for threads. */
void *teeperf_port_tree(size_t *length);

/* For code that is compiled with -pg: memory of the trusted side's own, zeroed, at a multiple of 8, in which calls
 * are counted: 24 bytes a place, 16 where addresses have 32 bits, of which two in three are for arcs. Asked for once
 * for each thread, at its first such call. What is counted is handed over with teeperf_detach(), when the host asks,
 * or by teeperf_take(). May not be compiled with -pg itself, nor for vectors of more than 128 bits. The library's is
 * a null pointer: nothing is counted. */
void *teeperf_port_arcs(size_t *length);

/* 1: sums alone, no events. The library's is 0. */
int teeperf_port_sums(void);

/* Of a library for threads apart (install-sdk --threads apart), each of which attaches memory of its own: TEEPERF_THREAD
 * bytes of the calling thread's own, at a multiple of 8 and zeroed before its first hook, the same ones always; a null
 * pointer: that thread is not recorded. Asked at every hook. The library has none: the image has to bring it. */
void *teeperf_port_thread(void);

#ifdef __cplusplus
}
#endif
#endif
