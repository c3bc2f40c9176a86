/* Functions whose time is that of one instruction beside a hook: a load right before a return, and
 * a loop that begins right behind an entry. */
#include <stdint.h>
#include <stdlib.h>

enum { COUNT = 1 << 22, STEP = 16 };
static uint64_t *memory;

/* The next one's place is known when this load is done: none is done beside another. */
__attribute__((noinline)) uint64_t fetch(uint64_t at) { return memory[at * STEP]; }

__attribute__((noinline)) void turn(unsigned times)
{
	do
		__asm__ volatile("imul %%eax, %%eax\n\timul %%eax, %%eax" : : : "eax");
	while (--times);
}

int main(void)
{
	memory = malloc((size_t)COUNT * STEP * sizeof *memory);
	if (!memory)
		return 1;
	/* One cycle through all of them, in an order that no processor foresees. */
	for (uint64_t i = 0; i < COUNT; i++)
		memory[i * STEP] = (i * 1664525 + 1013904223) % COUNT;
	uint64_t at = 1;
	for (unsigned i = 0; i < 1000000; i++)
		at = fetch(at);
	for (unsigned i = 0; i < 100; i++)
		turn(300000);
	free(memory);
	return at == COUNT;
}
