// What the manual (Intel SDM, volume 3D, chapter "Enclave Access Control and Data Structures") says of
// enclaves' structures, and what the files of the simulated machine ask of each other.
#pragma once
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <ucontext.h>

enum { PAGE = 4096, GPRSGX_BYTES = 184, EENTER = 2, ERESUME = 3, EEXIT = 4 };

struct secs {
	uint64_t size, base;
	uint32_t ssa_frame_pages, miscselect;
	uint8_t reserved[24];
	uint64_t attributes, xfrm;
};
#define ATTRIBUTE_DEBUG 2u
#define ATTRIBUTE_MODE64 4u

struct tcs {
	uint64_t state, flags, ossa;
	uint32_t cssa, nssa;
	uint64_t oentry, aep, ofsbase, ogsbase;
	uint32_t fslimit, gslimit;
	// Reserved by the manual. The simulated processor keeps the thread here that is inside: 0 if none is.
	uint32_t inside;
};

struct gprsgx {
	uint64_t rax, rcx, rdx, rbx, rsp, rbp, rsi, rdi, r8, r9, r10, r11, r12, r13, r14, r15;
	uint64_t rflags, rip, ursp, urbp;
	uint32_t exitinfo, reserved;
	uint64_t fsbase, gsbase;
};
_Static_assert(sizeof(struct gprsgx) == GPRSGX_BYTES, "as the manual has it");

struct secinfo {
	uint64_t flags, reserved[7];
};
enum { SECINFO_TCS = 1 << 8, SECINFO_REG = 2 << 8 };

struct enclave {
	uint64_t base, size, frame;
	int file, is_debug, is_initialised;
};

// What is known of enclaves, at an address that is always the same: for who looks at the machine from another process.
#define MACHINE_TABLE 0x5ec000000000ul
enum { MACHINE_MOST = 64, MACHINE_THREADS = 16 };
struct machine_enclave {
	uint64_t base, size, frame;
	uint32_t is_debug, threads;
	uint64_t tcs[MACHINE_THREADS];
};
struct machine_table {
	struct machine_enclave enclaves[MACHINE_MOST];
};

// The enclave at an address that can be entered; null: none.
struct enclave *machine_enclave_at(uint64_t address);
// The TCS by which this thread is inside an enclave; null: it is not.
extern __thread struct tcs *machine_inside __attribute__((tls_model("initial-exec")));
// Leaves the enclave that this thread is inside, as an interrupt does; `context` becomes the synthetic state.
void machine_aex(ucontext_t *context, int signal);
// Does the ENCLU that `context` stands at; 0: there is none.
int machine_enclu(ucontext_t *context);
// Whether the debug-read path gives memory at an address: 1 yes, 0 an enclave's and it does not, -1 no enclave's.
int machine_may_read(uint64_t address);
// Says what the processor would not have done, and ends the process.
_Noreturn void machine_fault(const char *what);
