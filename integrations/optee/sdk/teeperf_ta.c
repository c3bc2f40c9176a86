/* Linked into a trusted application by teeperf.mk: its entry points are wrapped (--wrap of GNU ld), so that
 * memory which the recorder lends with a call is attached for the time of that call, and hidden from the
 * application. Every way out of an entry point but a panic leads through here; behind a panic there is
 * nobody left to write.
 */
#include <tee_internal_api.h>
#include <tee_internal_api_extensions.h>
#include <user_ta_header_defines.h>

#include <teeperf_tee.h>

#if defined(__ARM_PCS_VFP) && !defined(__clang__)
/* With -pg these functions are called where arguments in floating-point registers are still needed. */
#pragma GCC target("general-regs-only")
#endif

#define NO_HOOK __attribute__((no_instrument_function))
#define SLOTS 4
#define TYPE_OF(types, slot) ((types) >> (4 * (slot)) & 0xf)

/* A parameter as libutee hands it over, whichever version of the API the application is built for. */
union parameter {
	struct {
		void *buffer;
		size_t size;
	} memref;
	struct {
		uint32_t a;
		uint32_t b;
	} value;
};

/* What the wrapped functions are called here and there: see --wrap in ld's manual. */
TEE_Result __real_TA_OpenSessionEntryPoint(uint32_t types, union parameter *parameters, void **session);
TEE_Result __wrap_TA_OpenSessionEntryPoint(uint32_t types, union parameter *parameters, void **session);
TEE_Result __real_TA_InvokeCommandEntryPoint(void *session, uint32_t command, uint32_t types,
					     union parameter *parameters);
TEE_Result __wrap_TA_InvokeCommandEntryPoint(void *session, uint32_t command, uint32_t types,
					     union parameter *parameters);

/* "80391883-0ed0-447a-a4d2-13769a2c6c84.elf", as the development kit calls the file with the symbols. */
static char name[41];

static NO_HOOK char *put(char *to, uint32_t value, int digits)
{
	while (digits-- > 0)
		*to++ = "0123456789abcdef"[value >> (4 * digits) & 0xf];
	return to;
}

NO_HOOK const char *teeperf_port_name(void)
{
	const TEE_UUID uuid = TA_UUID;
	char *to = name;
	int i = 0;

	to = put(to, uuid.timeLow, 8);
	*to++ = '-';
	to = put(to, uuid.timeMid, 4);
	*to++ = '-';
	to = put(to, uuid.timeHiAndVersion, 4);
	for (i = 0; i < 8; i++) {
		if (i == 0 || i == 2)
			*to++ = '-';
		to = put(to, uuid.clockSeqAndNode[i], 2);
	}
	*to++ = '.';
	*to++ = 'e';
	*to++ = 'l';
	*to++ = 'f';
	*to = 0;
	return name;
}

NO_HOOK int teeperf_port_is_outside(const void *start, size_t length)
{
	uint32_t flags = TEE_MEMORY_ACCESS_READ | TEE_MEMORY_ACCESS_WRITE | TEE_MEMORY_ACCESS_ANY_OWNER |
			 TEE_MEMORY_ACCESS_NONSECURE;

	return TEE_CheckMemoryAccessRights(flags, (void *)start, length) == TEE_SUCCESS;
}

#ifdef TEEPERF_COUNTS

/* Where the calls of code that is compiled with -pg are counted: 24 bytes for a pair of places, or 16. */
#ifndef TEEPERF_ARCS_SIZE
#define TEEPERF_ARCS_SIZE 32768
#endif
static uint64_t arcs[TEEPERF_ARCS_SIZE / sizeof(uint64_t)];

NO_HOOK void *teeperf_port_arcs(size_t *length)
{
	*length = sizeof(arcs);
	return arcs;
}

#ifdef CFG_FTRACE_SUPPORT

/* Where functions return to that OP-TEE traces itself. The development kit names it, and has it in one object with its own
 * counting, which would then be there twice. Nothing is traced here, so nobody comes. */
void __ftrace_return(void);
NO_HOOK void __ftrace_return(void)
{
	TEE_Panic(TEE_ERROR_BAD_STATE);
}

#endif

#else

/* Where calls are summed while no memory is lent, for TEEPERF_PROBE=tree always: some 100 bytes a call path. */
#ifndef TEEPERF_TREE_SIZE
#define TEEPERF_TREE_SIZE 32768
#endif
static uint64_t tree[TEEPERF_TREE_SIZE / sizeof(uint64_t)];

NO_HOOK void *teeperf_port_tree(size_t *length)
{
	*length = sizeof(tree);
	return tree;
}

NO_HOOK int teeperf_port_sums(void)
{
#ifdef TEEPERF_SUMS
	return 1;
#else
	return 0;
#endif
}

#endif

#ifdef TEEPERF_COUNTER

/* The physical counter of the generic timer, which in the normal world is the virtual one as well, unless a
 * hypervisor says otherwise. Where the core does not let applications read it (CNTKCTL_EL1.EL0PCTEN; Arm Architecture
 * Reference Manual, D13.8.5), as OP-TEE does with CFG_FTRACE_SUPPORT=y, it ends the application. */
NO_HOOK uint64_t teeperf_port_counter(void)
{
	uint64_t value = 0;

#ifdef __aarch64__
	__asm__ volatile("mrs %0, cntpct_el0" : "=r"(value));
#else
	__asm__ volatile("mrrc p15, 0, %Q0, %R0, c14" : "=r"(value));
#endif
	return value;
}

/* As the firmware has set it, which may be read where the counter may. */
NO_HOOK uint64_t teeperf_port_counter_hz(void)
{
	unsigned long value = 0;

#ifdef __aarch64__
	__asm__ volatile("mrs %0, cntfrq_el0" : "=r"(value));
#else
	__asm__ volatile("mrc p15, 0, %0, c14, c0, 0" : "=r"(value));
#endif
	return value;
}

#endif

/* Looks at the time until a millisecond has gone by: some milliseconds' worth on any processor. */
enum { MOST_LOOKS_AT_TIME = 20000 };

static NO_HOOK uint32_t milliseconds_since(const TEE_Time *begun)
{
	TEE_Time now = { 0 };

	TEE_GetSystemTime(&now);
	return (now.seconds - begun->seconds) * 1000 + now.millis - begun->millis;
}

/* The normal world goes on meanwhile. Linux does not rest for a client that has a signal pending, and
 * says that it has. The time is spent here then: worlds that switch without end hold up the recorder
 * that is to make room. */
NO_HOOK uint32_t teeperf_port_pause(void)
{
	TEE_Time begun = { 0 };
	uint32_t rested = 0;

	TEE_GetSystemTime(&begun);
	TEE_Wait(1);
	for (int looks = 0; rested == 0 && looks < MOST_LOOKS_AT_TIME; looks++)
		rested = milliseconds_since(&begun);
	return rested * 1000;
}

/* The parameter that the recorder has added, and what hides it. */
struct lent {
	int slot;
	union parameter parameter;
};

/* The first eight bytes of memory that is laid out for recording: "TPARENA", and the layout's version. */
static NO_HOOK int is_arena(const union parameter *parameter)
{
	static const unsigned char magic[8] = "TPARENA\x01";
	const volatile unsigned char *bytes = parameter->memref.buffer;
	size_t i = 0;

	if (!bytes || parameter->memref.size < TEEPERF_LEAST)
		return 0;
	for (i = 0; i < sizeof(magic); i++)
		if (bytes[i] != magic[i])
			return 0;
	return 1;
}

static NO_HOOK uint32_t attach(uint32_t types, union parameter *parameters, struct lent *lent)
{
	int slot = SLOTS;

	lent->slot = -1;
	while (slot-- > 0) {
		if (TYPE_OF(types, slot) != TEE_PARAM_TYPE_MEMREF_INOUT || !is_arena(&parameters[slot]))
			continue;
		/* Refused memory is hidden as well: it is not the application's. */
		teeperf_attach(parameters[slot].memref.buffer, parameters[slot].memref.size);
		lent->slot = slot;
		lent->parameter = parameters[slot];
		parameters[slot].memref.buffer = NULL;
		parameters[slot].memref.size = 0;
		return types & ~(0xfU << (4 * slot));
	}
	return types;
}

static NO_HOOK void detach(union parameter *parameters, const struct lent *lent)
{
	if (lent->slot < 0)
		return;
	teeperf_detach();
	parameters[lent->slot] = lent->parameter;
}

NO_HOOK TEE_Result __wrap_TA_OpenSessionEntryPoint(uint32_t types, union parameter *parameters, void **session)
{
	struct lent lent = { 0 };
	TEE_Result result = TEE_SUCCESS;

	types = attach(types, parameters, &lent);
	result = __real_TA_OpenSessionEntryPoint(types, parameters, session);
	detach(parameters, &lent);
	return result;
}

NO_HOOK TEE_Result __wrap_TA_InvokeCommandEntryPoint(void *session, uint32_t command, uint32_t types,
						     union parameter *parameters)
{
	struct lent lent = { 0 };
	TEE_Result result = TEE_SUCCESS;

	types = attach(types, parameters, &lent);
	result = __real_TA_InvokeCommandEntryPoint(session, command, types, parameters);
	detach(parameters, &lent);
	return result;
}
