// An enclave with real code in it: zstd's library, as the system has it, and what that asks of a C library.
#include "calls.h"
#include <stddef.h>

size_t ZSTD_compress(void *to, size_t room, const void *from, size_t length, int level);
size_t ZSTD_decompress(void *to, size_t room, const void *from, size_t length);

static unsigned char heap[2 << 20] __attribute__((aligned(64)));
static size_t used;

// What is freed comes back when all is done: each round begins with an empty heap.
void *malloc(size_t size)
{
	size_t at = (used + 63) & -64ul;
	if (size > sizeof heap - at)
		return NULL;
	used = at + size;
	return heap + at;
}

void free(void *block) { (void)block; }

void *memset(void *to, int byte, size_t length)
{
	void *at = to;
	__asm__ volatile("rep stosb" : "+D"(at), "+c"(length) : "a"(byte) : "memory");
	return to;
}

void *memcpy(void *to, const void *from, size_t length)
{
	void *at = to;
	__asm__ volatile("rep movsb" : "+D"(at), "+S"(from), "+c"(length) : : "memory");
	return to;
}

void *memmove(void *to, const void *from, size_t length)
{
	unsigned char *at = to;
	const unsigned char *source = from;
	if (at <= source || at >= source + length)
		return memcpy(to, from, length);
	while (length--)
		at[length] = source[length];
	return to;
}

void *calloc(size_t count, size_t size)
{
	void *block = malloc(count * size);
	return block ? memset(block, 0, count * size) : NULL;
}

void __stack_chk_fail(void) { __builtin_trap(); }

static unsigned char text[100000], packed[120000], unpacked[100000];

__attribute__((noinline, noipa)) long one_round(void)
{
	used = 0;
	size_t length = ZSTD_compress(packed, sizeof packed, text, sizeof text, 3);
	size_t back = ZSTD_decompress(unpacked, sizeof unpacked, packed, length);
	if (back != sizeof text)
		return -3;
	for (size_t i = 0; i < sizeof text; i++)
		if (text[i] != unpacked[i])
			return -4;
	return 0;
}

long handle_exception(void) { __builtin_trap(); }

// One thread at a time.
long ecall(long index, void *argument, void *tcs)
{
	struct work *work = argument;
	unsigned long seed = 1;
	(void)tcs;
	for (size_t i = 0; i < sizeof text; i++) {
		seed = seed * 6364136223846793005 + 1442695040888963407;
		text[i] = (i & 1023) > 600 ? text[i - 600] : seed >> 60;
	}
	for (long i = 0; i < work->rounds; i++) {
		long result = one_round();
		if (result)
			return result;
	}
	return index == ECALL_WORK ? 0 : -1;
}
