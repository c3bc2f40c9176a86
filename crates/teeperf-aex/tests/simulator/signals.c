// Interrupts: the first handler of each signal, below those of the program and of what is preloaded into it.
#define _GNU_SOURCE
#include "machine.h"
#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { SIGNALS = 65 };
typedef int sigaction_call(int, const struct sigaction *, struct sigaction *);
static sigaction_call *real_sigaction;
static struct sigaction kept[SIGNALS];
// What stands at the asynchronous exit pointer is done where the handler returns to it, and not by the instruction there, whose own
// signal takes as long as all the rest: for measuring.
static int resumes_at_once;

// The kernel's masks have eight bytes.
static void set_mask(const sigset_t *mask)
{
	syscall(SYS_rt_sigprocmask, SIG_SETMASK, mask, NULL, 8);
}

// All but what the processor itself raises: ENCLU is to work in handlers too.
static sigset_t all_but_faults(void)
{
	sigset_t all;
	sigfillset(&all);
	sigdelset(&all, SIGILL);
	sigdelset(&all, SIGFPE);
	sigdelset(&all, SIGSEGV);
	sigdelset(&all, SIGBUS);
	return all;
}

static int is_unhandled(int number)
{
	return kept[number].sa_handler == SIG_DFL || kept[number].sa_handler == SIG_IGN;
}

// Runs the program's handler, with the signals blocked that it wished.
static void deliver(int number, siginfo_t *info, void *at)
{
	ucontext_t *context = at;
	struct sigaction *to = &kept[number];
	int error = errno;
	if (is_unhandled(number))
		machine_fault("a fault that nobody handles");
	sigset_t mask = context->uc_sigmask, everything = all_but_faults();
	sigorset(&mask, &mask, &to->sa_mask);
	if (!(to->sa_flags & SA_NODEFER))
		sigaddset(&mask, number);
	sigdelset(&mask, SIGILL);
	sigdelset(&mask, SIGSEGV);
	set_mask(&mask);
	to->sa_sigaction(number, info, context);
	set_mask(&everything);
	errno = error;
	if (resumes_at_once && machine_inside == NULL && context->uc_mcontext.gregs[REG_RAX] == ERESUME)
		machine_enclu(context);
}

// As much of a signal's frame as the kernel has: its ucontext_t is shorter than that of libc.
enum { KERNEL_CONTEXT = 304, SIGINFO = 128 };

// The kernel left the frame on the enclave's stack, where a processor would have brought the host's first. The enclave uses its stack
// when it handles an exception, so the frame moves to the host's, and the thread returns from there.
static _Noreturn void deliver_on_host(int number, siginfo_t *info, ucontext_t *context)
{
	uint32_t extended;
	memcpy(&extended, (char *)context->uc_mcontext.fpregs + 464 + 4, 4);
	uint64_t at = (context->uc_mcontext.gregs[REG_RSP] - 128 - extended) & -64;
	char *floats = (char *)at, *other = floats - SIGINFO, *moved = other - KERNEL_CONTEXT;
	memcpy(floats, context->uc_mcontext.fpregs, extended);
	memcpy(other, info, SIGINFO);
	memcpy(moved, context, KERNEL_CONTEXT);
	((ucontext_t *)moved)->uc_mcontext.fpregs = (fpregset_t)floats;
	__asm__ volatile("mov %[moved], %%rsp\n"
			 "mov %[moved], %%rbx\n"
			 "call *%[deliver]\n"
			 "mov %%rbx, %%rsp\n"
			 "mov $15, %%eax\n" // rt_sigreturn
			 "syscall\n"
			 :
			 : [moved] "d"(moved), "D"(number), "S"(other), [deliver] "r"(deliver)
			 : "memory", "rbx");
	__builtin_unreachable();
}

// Whether the interrupted instruction may be ENCLU. Processors that do not know it find it invalid. Those that have SGX do not find what it is to
// work on, in a virtual machine too that is told of none. (A page fault's error code has bit 4 set where an instruction was fetched.)
static int is_of_enclu(int number, const ucontext_t *context)
{
	const greg_t *now = context->uc_mcontext.gregs;
	return number == SIGILL || (number == SIGSEGV && !(now[REG_TRAPNO] == 14 && now[REG_ERR] & 1 << 4));
}

// The program ends as without the machine: where the instruction faults once more, or who sent the signal sends it once more.
static void end_by(int number, const siginfo_t *info)
{
	if (info->si_code <= 0 && kept[number].sa_handler == SIG_IGN)
		return;
	struct sigaction fault = { .sa_handler = SIG_DFL };
	real_sigaction(number, &fault, NULL);
	if (info->si_code <= 0)
		raise(number);
}

static void interrupted(int number, siginfo_t *info, void *at)
{
	ucontext_t *context = at;
	if (is_of_enclu(number, context) && machine_enclu(context))
		return;
	if (number == SIGSEGV && is_unhandled(number))
		return end_by(number, info);
	int is_inside = machine_inside != NULL;
	if (is_inside)
		machine_aex(context, number);
	// On the way in and out the enclave is on the host's stack, and so is this.
	if (is_inside && machine_enclave_at((uint64_t)at))
		deliver_on_host(number, info, context);
	deliver(number, info, context);
}

static void take(int number, int flags)
{
	struct sigaction first = { .sa_sigaction = interrupted, .sa_mask = all_but_faults() };
	first.sa_flags = SA_SIGINFO | (flags & ~SA_ONSTACK);
	real_sigaction(number, &first, NULL);
}

__attribute__((constructor)) static void begin(void)
{
	real_sigaction = (sigaction_call *)dlsym(RTLD_NEXT, "sigaction");
	take(SIGILL, SA_NODEFER);
	take(SIGSEGV, SA_NODEFER);
	resumes_at_once = getenv("MACHINE_RESUMES_AT_ONCE") != NULL;
}

int sigaction(int number, const struct sigaction *wish, struct sigaction *before)
{
	if (!real_sigaction)
		begin();
	if (number < 1 || number >= SIGNALS)
		return real_sigaction(number, wish, before);
	struct sigaction old = kept[number];
	if (wish) {
		kept[number] = *wish;
		if (number == SIGILL || number == SIGSEGV)
			;
		else if (wish->sa_handler == SIG_DFL || wish->sa_handler == SIG_IGN)
			real_sigaction(number, wish, NULL);
		else
			take(number, wish->sa_flags);
	}
	if (before)
		*before = old;
	return 0;
}
