// The driver: /dev/sgx_enclave, answered where the kernel has none. Each open file is a memfd with the enclave's pages.
#define _GNU_SOURCE
#include "machine.h"
#include <asm/sgx.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { MOST = MACHINE_MOST };
static struct enclave enclaves[MOST];
static int opened[MOST];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static struct machine_table *table;

__attribute__((constructor)) static void begin(void)
{
	table = mmap((void *)MACHINE_TABLE, sizeof *table, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
	if (table != (void *)MACHINE_TABLE)
		machine_fault("the machine's table has no place");
}

static struct machine_enclave *told_of(struct enclave *enclave) { return &table->enclaves[enclave - enclaves]; }

static struct enclave *of_file(int file)
{
	for (int i = 0; i < MOST; i++)
		if (opened[i] && enclaves[i].file == file)
			return &enclaves[i];
	return NULL;
}

struct enclave *machine_enclave_at(uint64_t address)
{
	for (int i = 0; i < MOST; i++) {
		struct enclave *enclave = &enclaves[i];
		if (opened[i] && enclave->is_initialised && address - enclave->base < enclave->size)
			return enclave;
	}
	return NULL;
}

int machine_may_read(uint64_t address)
{
	struct enclave *enclave = machine_enclave_at(address);
	return enclave ? enclave->is_debug : -1;
}

int open(const char *path, int flags, ...)
{
	va_list rest;
	va_start(rest, flags);
	int mode = va_arg(rest, int);
	va_end(rest);
	if (strcmp(path, "/dev/sgx_enclave") != 0)
		return syscall(SYS_openat, AT_FDCWD, path, flags, mode);
	int file = memfd_create("sgx_enclave", MFD_CLOEXEC);
	pthread_mutex_lock(&lock);
	for (int i = 0; i < MOST; i++) {
		if (opened[i])
			continue;
		enclaves[i] = (struct enclave){ .file = file };
		opened[i] = 1;
		pthread_mutex_unlock(&lock);
		return file;
	}
	pthread_mutex_unlock(&lock);
	close(file);
	errno = EMFILE;
	return -1;
}

static int refuse(int error)
{
	errno = error;
	return -1;
}

static int create(struct enclave *enclave, const struct sgx_enclave_create *arguments)
{
	const struct secs *secs = (const struct secs *)arguments->src;
	if (enclave->size || (secs->size & (secs->size - 1)) || secs->base % secs->size || !secs->ssa_frame_pages)
		return refuse(EINVAL);
	if (ftruncate(enclave->file, secs->size))
		return -1;
	enclave->base = secs->base;
	enclave->frame = (uint64_t)secs->ssa_frame_pages * PAGE;
	enclave->is_debug = (secs->attributes & ATTRIBUTE_DEBUG) != 0;
	enclave->size = secs->size;
	*told_of(enclave) = (struct machine_enclave){ enclave->base, enclave->size, enclave->frame, enclave->is_debug, 0, { 0 } };
	return 0;
}

// One page at a time, as the kernel may when a signal comes: the caller goes on with the rest.
static int add(struct enclave *enclave, struct sgx_enclave_add_pages *arguments)
{
	const struct secinfo *secinfo = (const struct secinfo *)arguments->secinfo;
	uint64_t length = arguments->length, offset = arguments->offset;
	if (!length || length % PAGE || offset % PAGE || offset >= enclave->size || enclave->is_initialised)
		return refuse(EINVAL);
	if (secinfo->flags & SECINFO_TCS)
		length = PAGE;
	if (offset + length > enclave->size || pwrite(enclave->file, (void *)arguments->src, length, offset) != (ssize_t)length)
		return refuse(EINVAL);
	arguments->count = length;
	struct machine_enclave *told = told_of(enclave);
	if (secinfo->flags & SECINFO_TCS && told->threads < MACHINE_THREADS)
		told->tcs[told->threads++] = enclave->base + offset;
	return 0;
}

int ioctl(int file, unsigned long request, ...)
{
	va_list rest;
	va_start(rest, request);
	void *argument = va_arg(rest, void *);
	va_end(rest);
	struct enclave *enclave = of_file(file);
	if (!enclave)
		return syscall(SYS_ioctl, file, request, argument);
	switch (request) {
	case SGX_IOC_ENCLAVE_CREATE:
		return create(enclave, argument);
	case SGX_IOC_ENCLAVE_ADD_PAGES:
		return add(enclave, argument);
	case SGX_IOC_ENCLAVE_INIT:
		enclave->is_initialised = 1;
		return 0;
	}
	return refuse(ENOTTY);
}

// The driver's mappings have the enclave's page at each address, whatever offset is asked for, and a child has none of them.
void *mmap(void *wish, size_t length, int protection, int flags, int file, off_t offset)
{
	struct enclave *enclave = file < 0 ? NULL : of_file(file);
	if (enclave)
		offset = (uint64_t)wish - enclave->base;
	void *base = (void *)syscall(SYS_mmap, wish, length, protection, flags, file, offset);
	if (enclave && base != MAP_FAILED)
		madvise(base, length, MADV_DONTFORK);
	return base;
}

int munmap(void *base, size_t length)
{
	pthread_mutex_lock(&lock);
	for (int i = 0; i < MOST; i++)
		if (opened[i] && enclaves[i].size && enclaves[i].base == (uint64_t)base && enclaves[i].size == length) {
			opened[i] = 0;
			told_of(&enclaves[i])->size = 0;
			close(enclaves[i].file);
		}
	pthread_mutex_unlock(&lock);
	return syscall(SYS_munmap, base, length);
}
