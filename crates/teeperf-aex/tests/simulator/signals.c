// Interrupts: the first handler of each signal, below those of the program and of what is preloaded into it.
#define _GNU_SOURCE
#include "machine.h"
#include <dlfcn.h>
#include <errno.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { SIGNALS = 65 };
typedef int sigaction_call(int, const struct sigaction *, struct sigaction *);
static sigaction_call *real_sigaction;
static struct sigaction kept[SIGNALS];

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

static void interrupted(int number, siginfo_t *info, void *at)
{
	ucontext_t *context = at;
	int error = errno;
	if (number == SIGILL && machine_enclu(context))
		return;
	int is_inside = machine_inside != NULL;
	if (is_inside)
		machine_aex(context, number);
	struct sigaction *to = &kept[number];
	if (to->sa_handler == SIG_IGN || to->sa_handler == SIG_DFL)
		machine_fault("a fault that nobody handles");
	sigset_t mask = context->uc_sigmask, everything = all_but_faults();
	sigorset(&mask, &mask, &to->sa_mask);
	if (!(to->sa_flags & SA_NODEFER))
		sigaddset(&mask, number);
	sigdelset(&mask, SIGILL);
	set_mask(&mask);
	if (is_inside)
		machine_call_on(context->uc_mcontext.gregs[REG_RSP] - 128, to->sa_sigaction, number, info, context);
	else
		to->sa_sigaction(number, info, context);
	set_mask(&everything);
	errno = error;
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
		if (number == SIGILL)
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

__asm__(".text\n"
	".globl machine_call_on\n"
	".type machine_call_on, @function\n"
	"machine_call_on:\n"
	"	push %rbp\n"
	"	mov %rsp, %rbp\n"
	"	mov %rdi, %rsp\n"
	"	and $-16, %rsp\n"
	"	mov %rsi, %rax\n"
	"	mov %edx, %edi\n"
	"	mov %rcx, %rsi\n"
	"	mov %r8, %rdx\n"
	"	call *%rax\n"
	"	leave\n"
	"	ret\n"
	".size machine_call_on, .-machine_call_on\n");
