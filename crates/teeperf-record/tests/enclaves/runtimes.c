// Programs as three runtimes leave them: what debuggers are told of an enclave, in the runtimes' own structures. The first argument is
// the enclave's file, the second what is wrong with the list. It says where the enclave is, and waits for its end.
#define _GNU_SOURCE
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { SIZE = 4 << 20 };

#ifdef INTEL
struct info {
	struct info *next;
	void *start;
	void *tcs_list;
	uint32_t type, name_size;
	void *name, *heap, *reserved;
	uint64_t range;
	void *dynamic;
	uint32_t misc, version, unicode;
};
struct info *g_debug_enclave_info_list;

static void tell(char *base, char *file, const char *wrong)
{
	struct info *other = calloc(1, sizeof *other), *info = calloc(1, sizeof *info);
	*other = (struct info){ .next = info, .start = other, .name = "/other", .name_size = 6 };
	*info = (struct info){ .start = base, .name = file, .name_size = strlen(file), .type = 2, .version = 0x83d0ce23 };
	g_debug_enclave_info_list = other;
	if (!strcmp(wrong, "cycle"))
		other->next = other;
	if (!strcmp(wrong, "nowhere"))
		other->next = (struct info *)0x1000;
	if (!strcmp(wrong, "name"))
		info->name = (void *)0x2000;
	if (!strcmp(wrong, "length"))
		info->name_size = UINT32_MAX;
}
#endif

#ifdef OPEN_ENCLAVE
struct module {
	uint64_t magic, version;
	void *next;
	const char *path;
	uint64_t path_length;
	const void *base;
	uint64_t size;
	void *enclave;
};
struct enclave {
	uint64_t magic, version;
	struct enclave *next;
	const char *path;
	uint64_t path_length;
	const void *base;
	uint64_t size;
	void **tcs;
	uint64_t tcs_count, flags;
	struct module *modules;
};
struct enclave *oe_debug_enclaves_list;

static void tell(char *base, char *file, const char *wrong)
{
	struct enclave *enclave = calloc(1, sizeof *enclave);
	struct module *module = calloc(1, sizeof *module);
	*module = (struct module){ 0xf67ae6230a18a2ce, 1, NULL, file, strlen(file), base + SIZE / 2, SIZE / 2, enclave };
	*enclave = (struct enclave){ 0xabc540ee14fa48ce, 2, NULL, file, strlen(file), base, SIZE, NULL, 0, 1, module };
	oe_debug_enclaves_list = enclave;
	if (!strcmp(wrong, "cycle"))
		module->next = module;
	if (!strcmp(wrong, "nowhere"))
		enclave->modules = (struct module *)0x1000;
	if (!strcmp(wrong, "magic"))
		enclave->magic++;
}
#endif

#ifdef GRAMINE
struct debug_map {
	char *name;
	void *addr;
	struct debug_map *next;
};
struct debug_map *g_debug_map;

static struct debug_map *add(char *name, void *addr)
{
	struct debug_map *map = malloc(sizeof *map);
	*map = (struct debug_map){ name, addr, g_debug_map };
	return g_debug_map = map;
}

static void tell(char *base, char *file, const char *wrong)
{
	struct debug_map *last = add(file, (void *)0x100000);
	add("[vdso]", base + 4096);
	add(file, base);
	add(file, base + SIZE / 2);
	if (!strcmp(wrong, "cycle"))
		last->next = g_debug_map;
	if (!strcmp(wrong, "nowhere"))
		last->next = (struct debug_map *)0x1000;
}
#endif

int main(int count, char **arguments)
{
	char *base = mmap(NULL, SIZE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), byte;
	tell(base, arguments[1], count > 2 ? arguments[2] : "");
	printf("%lx %lx\n", (unsigned long)base, (unsigned long)base + SIZE);
	fflush(stdout);
	return read(0, &byte, 1) < 0;
}
