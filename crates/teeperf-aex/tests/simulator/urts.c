// An untrusted runtime, of the same parts as real ones: a loader, a pool of TCSs, ECALLs with the OCALLs in them,
// and a handler that takes exceptions back into the enclave.
#define _GNU_SOURCE
#include "urts.h"
#include "machine.h"
#include "../../../teeperf-inside/include/teeperf_aex.h"
#include <asm/sgx.h>
#include <elf.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { STACK = 64 * PAGE, MOST_THREADS = 16 };
extern long urts_enter(void *tcs, long index, void *argument, long out[2], int is_apart);
extern char urts_resumes[], urts_resumes_apart[];

// What Intel's runtime tells debuggers: its list, with its names and layout (se_debugger_lib.h).
typedef struct _debug_enclave_info_t {
	struct _debug_enclave_info_t *next_enclave_info;
	void *start_addr;
	void *tcs_list;
	uint32_t enclave_type, file_name_size;
	char *lpFileName;
	void *g_peak_heap_used_addr, *g_peak_rsrv_mem_committed_addr;
	uint64_t elrange_start_address;
	void *dyn_sec;
	uint32_t misc_select, struct_version, unicode;
} debug_enclave_info_t;
debug_enclave_info_t *g_debug_enclave_info_list;
static pthread_mutex_t told = PTHREAD_MUTEX_INITIALIZER;

struct urts_enclave {
	debug_enclave_info_t info;
	uint64_t base, size;
	int file, is_apart, is_inline, threads;
	urts_ocall *const *ocalls;
	pthread_mutex_t lock;
	pthread_cond_t freed;
	void *tcs[MOST_THREADS];
	int is_taken[MOST_THREADS];
};

// The TCS that this thread is bound to, from its outermost ECALL on.
static __thread void *bound;
static __thread struct urts_enclave *bound_to;

static _Noreturn void fail(const char *what)
{
	perror(what);
	exit(98);
}

// The kernel, by the C library or without it. What fails is negative.
static long kernel(int is_inline, long number, long a, long b, long c, long d, long e, long f)
{
	if (is_inline) {
		register long r10 __asm__("r10") = d, r8 __asm__("r8") = e, r9 __asm__("r9") = f;
		long result;
		__asm__ volatile("syscall"
				 : "=a"(result)
				 : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
				 : "rcx", "r11", "memory");
		return result;
	}
	switch (number) {
	case SYS_open:
		return open((const char *)a, b);
	case SYS_ioctl:
		return ioctl(a, b, c);
	case SYS_mmap:
		return (long)mmap((void *)a, b, c, d, e, f);
	}
	return munmap((void *)a, b);
}

static long driver(struct urts_enclave *enclave, unsigned long request, void *argument)
{
	return kernel(enclave->is_inline, SYS_ioctl, enclave->file, request, (long)argument, 0, 0, 0);
}

// The whole range that the file's segments take, relocated to `base`.
static uint8_t *image_of(const char *path, uint64_t base, uint64_t *size, uint64_t *entry)
{
	int file = open(path, O_RDONLY);
	struct stat facts;
	if (file < 0 || fstat(file, &facts))
		fail(path);
	uint8_t *bytes = malloc(facts.st_size);
	if (read(file, bytes, facts.st_size) != facts.st_size)
		fail(path);
	close(file);
	Elf64_Ehdr *elf = (Elf64_Ehdr *)bytes;
	Elf64_Phdr *segments = (Elf64_Phdr *)(bytes + elf->e_phoff);
	uint64_t end = 0;
	for (int i = 0; i < elf->e_phnum; i++)
		if (segments[i].p_type == PT_LOAD && segments[i].p_vaddr + segments[i].p_memsz > end)
			end = segments[i].p_vaddr + segments[i].p_memsz;
	*size = (end + PAGE - 1) & -(uint64_t)PAGE;
	*entry = elf->e_entry;
	uint8_t *image = aligned_alloc(PAGE, *size);
	memset(image, 0, *size);
	Elf64_Dyn *dynamic = NULL;
	for (int i = 0; i < elf->e_phnum; i++) {
		if (segments[i].p_type == PT_LOAD)
			memcpy(image + segments[i].p_vaddr, bytes + segments[i].p_offset, segments[i].p_filesz);
		if (segments[i].p_type == PT_DYNAMIC)
			dynamic = (Elf64_Dyn *)(image + segments[i].p_vaddr);
	}
	Elf64_Rela *relocations = NULL;
	uint64_t length = 0;
	for (; dynamic && dynamic->d_tag != DT_NULL; dynamic++) {
		if (dynamic->d_tag == DT_RELA)
			relocations = (Elf64_Rela *)(image + dynamic->d_un.d_ptr);
		if (dynamic->d_tag == DT_RELASZ)
			length = dynamic->d_un.d_val;
	}
	for (uint64_t i = 0; i < length / sizeof *relocations; i++)
		if (ELF64_R_TYPE(relocations[i].r_info) == R_X86_64_RELATIVE)
			*(uint64_t *)(image + relocations[i].r_offset) = base + relocations[i].r_addend;
	free(bytes);
	return image;
}

static void add_pages(struct urts_enclave *enclave, const void *source, uint64_t offset, uint64_t length, uint64_t flags)
{
	struct secinfo secinfo = { .flags = flags };
	while (length) {
		struct sgx_enclave_add_pages arguments = {
			.src = (uint64_t)source, .offset = offset, .length = length, .secinfo = (uint64_t)&secinfo, .flags = SGX_PAGE_MEASURE,
		};
		if (driver(enclave, SGX_IOC_ENCLAVE_ADD_PAGES, &arguments))
			fail("ADD_PAGES");
		source = (const char *)source + arguments.count;
		offset += arguments.count;
		length -= arguments.count;
	}
}

static uint64_t add_thread(struct urts_enclave *enclave, uint64_t offset, uint64_t entry, struct urts_settings settings)
{
	uint64_t frame = (uint64_t)settings.frame_pages * PAGE, frames = settings.frames * frame;
	uint8_t *zeroes = aligned_alloc(PAGE, STACK + frames), *data = aligned_alloc(PAGE, PAGE);
	memset(zeroes, 0, STACK + frames);
	memset(data, 0, PAGE);
	offset += PAGE; // A page that is not there, below the stack.
	add_pages(enclave, zeroes, offset, STACK, SECINFO_REG | 3);
	offset += STACK;
	struct tcs *tcs = (struct tcs *)data;
	*tcs = (struct tcs){ .ossa = offset + 2 * PAGE, .nssa = settings.frames, .oentry = entry, .fslimit = 4095, .gslimit = 4095 };
	tcs->ofsbase = tcs->ogsbase = offset + PAGE;
	add_pages(enclave, data, offset, PAGE, SECINFO_TCS);
	memset(data, 0, PAGE);
	memcpy(data + 32, &frame, 8);
	add_pages(enclave, data, offset + PAGE, PAGE, SECINFO_REG | 3);
	add_pages(enclave, zeroes, offset + 2 * PAGE, frames, SECINFO_REG | 3);
	enclave->tcs[enclave->threads++] = (void *)(enclave->base + offset);
	free(zeroes);
	free(data);
	return offset + 2 * PAGE + frames;
}

static int asks_for_samples;

// An exception inside: the enclave handles it, by an entry on the next SSA frame; then the interrupted code is resumed.
static void exception(int number, siginfo_t *info, void *at)
{
	greg_t *now = ((ucontext_t *)at)->uc_mcontext.gregs;
	int is_ours = now[REG_RIP] == (greg_t)urts_resumes || now[REG_RIP] == (greg_t)urts_resumes_apart;
	if (!is_ours || now[REG_RAX] != ERESUME)
		fail("an exception outside");
	// Some runtimes say by themselves that an enclave was left.
	if (asks_for_samples && teeperf_aex_sample && teeperf_aex_sample((void *)now[REG_RBX]))
		fail("no sample");
	long out[2];
	urts_enter((void *)now[REG_RBX], 0, NULL, out, bound_to->is_apart);
	(void)number, (void)info;
}

static void take_exceptions(void)
{
	struct sigaction action = { .sa_sigaction = exception, .sa_flags = SA_SIGINFO | SA_NODEFER };
	sigaction(SIGFPE, &action, NULL);
	asks_for_samples = getenv("MACHINE_SAMPLES") != NULL;
}

// As there: when the enclave is finished, and before it goes.
static void tell_of(struct urts_enclave *enclave, const char *file, int is_debug)
{
	debug_enclave_info_t *info = &enclave->info;
	info->start_addr = (void *)enclave->base;
	info->enclave_type = is_debug ? 2 : 0;
	info->lpFileName = strdup(file);
	info->file_name_size = strlen(file);
	info->elrange_start_address = enclave->base;
	pthread_mutex_lock(&told);
	info->next_enclave_info = g_debug_enclave_info_list;
	g_debug_enclave_info_list = info;
	pthread_mutex_unlock(&told);
}

static void tell_no_more(struct urts_enclave *enclave)
{
	pthread_mutex_lock(&told);
	for (debug_enclave_info_t **at = &g_debug_enclave_info_list; *at; at = &(*at)->next_enclave_info)
		if (*at == &enclave->info) {
			*at = enclave->info.next_enclave_info;
			break;
		}
	pthread_mutex_unlock(&told);
	free(enclave->info.lpFileName);
}

struct urts_enclave *urts_create(const char *file, struct urts_settings settings, urts_ocall *const *ocalls)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	pthread_once(&once, take_exceptions);
	struct urts_enclave *enclave = calloc(1, sizeof *enclave);
	enclave->size = 4 << 20;
	enclave->ocalls = ocalls;
	enclave->is_apart = settings.is_apart;
	pthread_mutex_init(&enclave->lock, NULL);
	pthread_cond_init(&enclave->freed, NULL);
	// A range of twice the size has an aligned one in it; what is around it is given back.
	uint8_t *range = mmap(NULL, 2 * enclave->size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	enclave->base = ((uint64_t)range + enclave->size - 1) & -enclave->size;
	uint64_t before = enclave->base - (uint64_t)range;
	if (before)
		munmap(range, before);
	munmap((void *)(enclave->base + enclave->size), enclave->size - before);
	enclave->is_inline = settings.is_inline;
	enclave->file = kernel(enclave->is_inline, SYS_open, (long)"/dev/sgx_enclave", O_RDWR, 0, 0, 0, 0);
	struct secs *secs = aligned_alloc(PAGE, PAGE);
	memset(secs, 0, PAGE);
	secs->size = enclave->size;
	secs->base = enclave->base;
	secs->ssa_frame_pages = settings.frame_pages;
	secs->attributes = ATTRIBUTE_MODE64 | (settings.is_debug ? ATTRIBUTE_DEBUG : 0);
	secs->xfrm = 7;
	struct sgx_enclave_create arguments = { .src = (uint64_t)secs };
	if (enclave->file < 0 || driver(enclave, SGX_IOC_ENCLAVE_CREATE, &arguments))
		fail("CREATE");
	free(secs);
	uint64_t offset, entry;
	uint8_t *image = image_of(file, enclave->base, &offset, &entry);
	add_pages(enclave, image, 0, offset, SECINFO_REG | 7);
	free(image);
	for (int i = 0; i < settings.threads; i++)
		offset = add_thread(enclave, offset, entry, settings);
	struct sgx_enclave_init init = { 0 };
	if (offset > enclave->size || driver(enclave, SGX_IOC_ENCLAVE_INIT, &init))
		fail("INIT");
	long protection = PROT_READ | PROT_WRITE | PROT_EXEC, flags = MAP_SHARED | MAP_FIXED;
	if (kernel(enclave->is_inline, SYS_mmap, enclave->base, enclave->size, protection, flags, enclave->file, 0) < 0)
		fail("mmap");
	tell_of(enclave, file, settings.is_debug);
	return enclave;
}

static void *take_tcs(struct urts_enclave *enclave)
{
	pthread_mutex_lock(&enclave->lock);
	for (;;) {
		for (int i = 0; i < enclave->threads; i++)
			if (!enclave->is_taken[i]) {
				enclave->is_taken[i] = 1;
				pthread_mutex_unlock(&enclave->lock);
				return enclave->tcs[i];
			}
		pthread_cond_wait(&enclave->freed, &enclave->lock);
	}
}

static void give_tcs(struct urts_enclave *enclave, void *tcs)
{
	pthread_mutex_lock(&enclave->lock);
	for (int i = 0; i < enclave->threads; i++)
		if (enclave->tcs[i] == tcs)
			enclave->is_taken[i] = 0;
	pthread_cond_signal(&enclave->freed);
	pthread_mutex_unlock(&enclave->lock);
}

long urts_ecall(struct urts_enclave *enclave, long index, void *argument)
{
	void *before = bound;
	struct urts_enclave *before_to = bound_to;
	if (!before || before_to != enclave) {
		bound = take_tcs(enclave);
		bound_to = enclave;
	}
	long out[2];
	urts_enter(bound, index, argument, out, enclave->is_apart);
	while (out[0] != -1) {
		long result = enclave->ocalls[out[0]](enclave, (void *)out[1]);
		urts_enter(bound, -1, (void *)result, out, enclave->is_apart);
	}
	if (bound != before)
		give_tcs(enclave, bound);
	bound = before;
	bound_to = before_to;
	return out[1];
}

void urts_destroy(struct urts_enclave *enclave)
{
	tell_no_more(enclave);
	kernel(enclave->is_inline, SYS_munmap, enclave->base, enclave->size, 0, 0, 0, 0);
	free(enclave);
}

uint64_t urts_base(const struct urts_enclave *enclave) { return enclave->base; }
uint64_t urts_size(const struct urts_enclave *enclave) { return enclave->size; }
void *urts_tcs(const struct urts_enclave *enclave, int number) { return number < enclave->threads ? enclave->tcs[number] : 0; }
