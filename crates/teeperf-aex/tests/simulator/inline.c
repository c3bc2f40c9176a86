// Hosts that ask the kernel by instructions of their own, as Gramine's does. `MACHINE_INLINE` says that the host is one: its
// calls, and those of no library, come here by SIGSYS (Linux, "Syscall User Dispatch"), since the kernel has no such device.
#define _GNU_SOURCE
#include "machine.h"
#include <fcntl.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

// Programs are loaded below, libraries above.
#define LIBRARIES 0x700000000000ul
#define LIBRARIES_BYTES 0x100000000000ul

static void asked(int signal, siginfo_t *info, void *at)
{
	greg_t *now = ((ucontext_t *)at)->uc_mcontext.gregs;
	greg_t a = now[REG_RDI], b = now[REG_RSI], c = now[REG_RDX], result;
	(void)signal;
	switch (info->si_syscall) {
	case SYS_open:
		result = open((const char *)a, b, c);
		break;
	case SYS_ioctl:
		result = ioctl(a, b, c);
		break;
	case SYS_mmap:
		result = (greg_t)mmap((void *)a, b, c, now[REG_R10], now[REG_R8], now[REG_R9]);
		break;
	case SYS_munmap:
		result = munmap((void *)a, b);
		break;
	default:
		machine_fault("a call that hosts do not make");
	}
	now[REG_RAX] = result == -1 ? -errno : result;
}

__attribute__((constructor)) static void begin(void)
{
	if (!getenv("MACHINE_INLINE"))
		return;
	struct sigaction action = { .sa_sigaction = asked, .sa_flags = SA_SIGINFO };
	sigaction(SIGSYS, &action, NULL);
	if (prctl(59 /* PR_SET_SYSCALL_USER_DISPATCH */, 1, LIBRARIES, LIBRARIES_BYTES, NULL))
		machine_fault("no Syscall User Dispatch");
}
