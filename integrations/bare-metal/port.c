/* What the image brings for the runtime. Compiled without hooks. */
#include <teeperf_tee.h>

#include "board.h"

extern char own_begin[], own_end[];

/* What is not the image's own memory is the host's, as far as this machine has any. */
int teeperf_port_is_outside(const void *start, size_t length)
{
	uintptr_t begin = (uintptr_t)start;

	return begin + length <= (uintptr_t)own_begin || begin >= (uintptr_t)own_end;
}

uint64_t teeperf_port_counter(void)
{
	return board_time();
}

/* A tenth of a millisecond. */
uint32_t teeperf_port_pause(void)
{
	uint64_t until = board_time() + BOARD_HZ / 10000;

	while (board_time() < until)
		;
	return 100;
}

const char *teeperf_port_name(void)
{
	return "image.elf";
}
