// What a tracer sees of the machine: preloaded into the tracer. A processor has a thread leave its enclave before anybody can stop it;
// here it stands with RIP inside. So its asynchronous exit is made up for who asks for its registers, and reads its memory meanwhile; the
// thread itself notices nothing. Of a production enclave no memory is given.
#define _GNU_SOURCE
#include "machine.h"
#include <dlfcn.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <unistd.h>

// The thread that stands behind an exit, one at a time, and what was made up of it.
static struct {
	int process, is_there;
	uint64_t cssa_at, frame_at;
	uint32_t cssa;
	struct gprsgx frame;
} left;

static long (*real_ptrace)(int, pid_t, void *, void *);
static ssize_t (*real_pread)(int, void *, size_t, off64_t);

__attribute__((constructor)) static void begin(void)
{
	real_ptrace = (long (*)(int, pid_t, void *, void *))dlsym(RTLD_NEXT, "ptrace");
	real_pread = (ssize_t (*)(int, void *, size_t, off64_t))dlsym(RTLD_NEXT, "pread64");
}

static int process_of(pid_t thread)
{
	char path[64], line[128];
	int process = 0;
	snprintf(path, sizeof path, "/proc/%d/status", thread);
	FILE *file = fopen(path, "re");
	while (file && fgets(line, sizeof line, file) && sscanf(line, "Tgid: %d", &process) != 1)
		;
	if (file)
		fclose(file);
	return process;
}

static int read_of(int process, uint64_t at, void *into, size_t size)
{
	struct iovec here = { into, size }, there = { (void *)at, size };
	return process_vm_readv(process, &here, 1, &there, 1, 0) == (ssize_t)size;
}

static int enclaves_of(int process, struct machine_table *table)
{
	return read_of(process, MACHINE_TABLE, table, sizeof *table);
}

// Has a thread whose registers these are leave the enclave that it is inside.
static void leave(pid_t thread, struct user_regs_struct *now)
{
	int process = process_of(thread);
	struct machine_table table;
	if (!enclaves_of(process, &table))
		return;
	for (int i = 0; i < MACHINE_MOST; i++) {
		struct machine_enclave *enclave = &table.enclaves[i];
		if (!enclave->size || now->rip - enclave->base >= enclave->size)
			continue;
		for (uint32_t t = 0; t < enclave->threads; t++) {
			struct tcs tcs;
			if (!read_of(process, enclave->tcs[t], &tcs, sizeof tcs) || tcs.inside != (uint32_t)thread)
				continue;
			uint64_t region = enclave->base + tcs.ossa + enclave->frame * (tcs.cssa + 1) - GPRSGX_BYTES;
			if (!read_of(process, region, &left.frame, sizeof left.frame))
				return;
			const uint64_t saved[18] = {
				now->rax, now->rcx, now->rdx, now->rbx, now->rsp, now->rbp, now->rsi, now->rdi, now->r8,
				now->r9, now->r10, now->r11, now->r12, now->r13, now->r14, now->r15, now->eflags, now->rip,
			};
			memcpy(&left.frame, saved, sizeof saved);
			left.process = process;
			left.cssa_at = enclave->tcs[t] + offsetof(struct tcs, cssa);
			left.cssa = tcs.cssa + 1;
			left.frame_at = region;
			left.is_there = 1;
			memset(now, 0, offsetof(struct user_regs_struct, orig_rax));
			now->rax = ERESUME;
			now->rbx = enclave->tcs[t];
			now->rcx = now->rip = tcs.aep;
			now->rsp = left.frame.ursp;
			now->rbp = left.frame.urbp;
			return;
		}
	}
}

long ptrace(enum __ptrace_request request, ...)
{
	va_list rest;
	va_start(rest, request);
	pid_t thread = va_arg(rest, pid_t);
	void *address = va_arg(rest, void *), *data = va_arg(rest, void *);
	va_end(rest);
	if (request == PTRACE_CONT)
		left.is_there = 0;
	long result = real_ptrace(request, thread, address, data);
	int error = errno;
	if (request == PTRACE_GETREGSET && result == 0)
		leave(thread, ((struct iovec *)data)->iov_base);
	errno = error;
	return result;
}

// MACHINE_WITHOUT_EVENTS: a kernel that grants none (perf_event_open(2)).
long syscall(long number, ...)
{
	va_list rest;
	va_start(rest, number);
	long a[6];
	for (int i = 0; i < 6; i++)
		a[i] = va_arg(rest, long);
	va_end(rest);
	if (number == SYS_perf_event_open && getenv("MACHINE_WITHOUT_EVENTS")) {
		errno = EACCES;
		return -1;
	}
	register long r10 __asm__("r10") = a[3], r8 __asm__("r8") = a[4], r9 __asm__("r9") = a[5];
	long result;
	__asm__ volatile("syscall"
			 : "=a"(result)
			 : "a"(number), "D"(a[0]), "S"(a[1]), "d"(a[2]), "r"(r10), "r"(r8), "r"(r9)
			 : "rcx", "r11", "memory");
	if (result < 0) {
		errno = -result;
		return -1;
	}
	return result;
}

// MACHINE_SLEEPS: after so many reads of enclaves their memory is lost, as when a machine slept.
// The process whose memory a file is; 0: none's.
static int memory_of(int file)
{
	char path[64], target[64];
	int process = 0, end = 0;
	snprintf(path, sizeof path, "/proc/self/fd/%d", file);
	ssize_t length = readlink(path, target, sizeof target - 1);
	target[length > 0 ? length : 0] = 0;
	return sscanf(target, "/proc/%d/mem%n", &process, &end) == 1 && end ? process : 0;
}

static void overlay(uint8_t *into, uint64_t at, size_t length, uint64_t begin, const void *bytes, size_t size)
{
	for (size_t i = 0; i < size; i++)
		if (begin + i - at < length)
			into[begin + i - at] = ((const uint8_t *)bytes)[i];
}

ssize_t pread64(int file, void *into, size_t size, off64_t at)
{
	static long reads;
	const char *sleeps = getenv("MACHINE_SLEEPS");
	int process = memory_of(file);
	struct machine_table table;
	if (process && enclaves_of(process, &table))
		for (int i = 0; i < MACHINE_MOST; i++) {
			struct machine_enclave *enclave = &table.enclaves[i];
			if ((uint64_t)at - enclave->base >= enclave->size)
				continue;
			if (!enclave->is_debug || (sleeps && ++reads > atol(sleeps))) {
				errno = EIO;
				return -1;
			}
		}
	ssize_t result = real_pread(file, into, size, at);
	if (result > 0 && process && left.is_there && left.process == process) {
		overlay(into, at, result, left.cssa_at, &left.cssa, sizeof left.cssa);
		overlay(into, at, result, left.frame_at, &left.frame, sizeof left.frame);
	}
	return result;
}
