// ENCLU, done to the state that its SIGILL or SIGSEGV interrupted, and the asynchronous exit (AEX).
#define _GNU_SOURCE
#include "machine.h"
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

__thread struct tcs *machine_inside __attribute__((tls_model("initial-exec")));

_Noreturn void machine_fault(const char *what)
{
	write(2, "simulated processor: ", 21);
	write(2, what, strlen(what));
	write(2, "\n", 1);
	_exit(99);
}

// Registers of GPRSGX from RAX to RIP, as Linux numbers them in a signal's context.
static const int SAVED[18] = {
	REG_RAX, REG_RCX, REG_RDX, REG_RBX, REG_RSP, REG_RBP, REG_RSI, REG_RDI, REG_R8, REG_R9,
	REG_R10, REG_R11, REG_R12, REG_R13, REG_R14, REG_R15, REG_EFL, REG_RIP,
};

static struct gprsgx *frame_of(struct enclave *enclave, struct tcs *tcs, uint32_t frame)
{
	return (struct gprsgx *)(enclave->base + tcs->ossa + (frame + 1) * enclave->frame - GPRSGX_BYTES);
}

// Bytes of the extended state in a signal's frame (sw_reserved of struct _fpstate: magic, extended size, mask, size).
static uint32_t extended_bytes(ucontext_t *context)
{
	uint32_t size;
	memcpy(&size, (char *)context->uc_mcontext.fpregs + 464 + 16, 4);
	return size;
}

static void *extended_of(struct enclave *enclave, struct gprsgx *gprs, ucontext_t *context)
{
	if (extended_bytes(context) + GPRSGX_BYTES > enclave->frame)
		machine_fault("the extended state does not fit the SSA frame");
	return (char *)gprs + GPRSGX_BYTES - enclave->frame;
}

static struct enclave *entered(struct tcs *tcs)
{
	struct enclave *enclave = machine_enclave_at((uint64_t)tcs);
	if (!enclave || (uint64_t)tcs % PAGE)
		machine_fault("no TCS of an enclave");
	uint32_t nobody = 0;
	if (!__atomic_compare_exchange_n(&tcs->inside, &nobody, gettid(), 0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
		machine_fault("the TCS is in use");
	return enclave;
}

static void eenter(greg_t *now)
{
	struct tcs *tcs = (struct tcs *)now[REG_RBX];
	struct enclave *enclave = entered(tcs);
	if (tcs->cssa >= tcs->nssa)
		machine_fault("no SSA frame is left");
	struct gprsgx *gprs = frame_of(enclave, tcs, tcs->cssa);
	gprs->ursp = now[REG_RSP];
	gprs->urbp = now[REG_RBP];
	tcs->aep = now[REG_RCX];
	now[REG_RAX] = tcs->cssa;
	now[REG_RCX] = now[REG_RIP] + 3;
	now[REG_RIP] = enclave->base + tcs->oentry;
	machine_inside = tcs;
}

static void eresume(ucontext_t *context)
{
	greg_t *now = context->uc_mcontext.gregs;
	struct tcs *tcs = (struct tcs *)now[REG_RBX];
	struct enclave *enclave = entered(tcs);
	if (tcs->cssa == 0)
		machine_fault("nothing to resume");
	struct gprsgx *gprs = frame_of(enclave, tcs, --tcs->cssa);
	gprs->ursp = now[REG_RSP];
	gprs->urbp = now[REG_RBP];
	tcs->aep = now[REG_RCX];
	for (int i = 0; i < 18; i++)
		now[SAVED[i]] = ((uint64_t *)gprs)[i];
	memcpy(context->uc_mcontext.fpregs, extended_of(enclave, gprs, context), extended_bytes(context));
	machine_inside = tcs;
}

static void eexit(greg_t *now)
{
	struct tcs *tcs = machine_inside;
	machine_inside = NULL;
	now[REG_RIP] = now[REG_RBX];
	now[REG_RCX] = tcs->aep;
	__atomic_store_n(&tcs->inside, 0, __ATOMIC_RELEASE);
}

int machine_enclu(ucontext_t *context)
{
	greg_t *now = context->uc_mcontext.gregs;
	if (memcmp((void *)now[REG_RIP], "\x0f\x01\xd7", 3) != 0)
		return 0;
	int leaf = now[REG_RAX];
	if (machine_inside ? leaf != EEXIT : leaf != EENTER && leaf != ERESUME)
		machine_fault("a leaf of ENCLU that is not for here");
	if (leaf == EENTER)
		eenter(now);
	else if (leaf == ERESUME)
		eresume(context);
	else
		eexit(now);
	return 1;
}

// The extended state becomes that of a processor that begins: nothing of the enclave's is in it.
static void initialise(ucontext_t *context)
{
	const uint64_t nothing = 0;
	context->uc_mcontext.fpregs->cwd = 0x37f;
	context->uc_mcontext.fpregs->mxcsr = 0x1f80;
	memcpy((char *)context->uc_mcontext.fpregs + 512, &nothing, 8); // XSTATE_BV
}

void machine_aex(ucontext_t *context, int signal)
{
	// Table "Exception Vectors": those that are told inside the enclave.
	uint32_t vector = signal == SIGFPE ? 0 : signal == SIGILL ? 6 : 256;
	greg_t *now = context->uc_mcontext.gregs;
	struct tcs *tcs = machine_inside;
	struct enclave *enclave = machine_enclave_at((uint64_t)tcs);
	struct gprsgx *gprs = frame_of(enclave, tcs, tcs->cssa);
	for (int i = 0; i < 18; i++)
		((uint64_t *)gprs)[i] = now[SAVED[i]];
	gprs->exitinfo = vector == 256 ? 0 : 1u << 31 | 3 << 8 | vector;
	gprs->fsbase = enclave->base + tcs->ofsbase;
	gprs->gsbase = enclave->base + tcs->ogsbase;
	memcpy(extended_of(enclave, gprs, context), context->uc_mcontext.fpregs, extended_bytes(context));
	initialise(context);
	for (int i = 0; i < 16; i++)
		now[SAVED[i]] = 0;
	now[REG_RAX] = ERESUME;
	now[REG_RBX] = (greg_t)tcs;
	now[REG_RCX] = tcs->aep;
	now[REG_RSP] = gprs->ursp;
	now[REG_RBP] = gprs->urbp;
	now[REG_RIP] = tcs->aep;
	now[REG_EFL] &= ~0x108d5ll;
	tcs->cssa++;
	machine_inside = NULL;
	__atomic_store_n(&tcs->inside, 0, __ATOMIC_RELEASE);
}
