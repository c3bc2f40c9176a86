/* Finds the memory that QEMU shares as a PCI device, and puts it at an address: no firmware has done so. */
#include "board.h"

/* Configuration space of bus 0: 32 KiB for each device. PCI Local Bus Specification 3.0, 6.1 and 6.2.5. */
#define DEVICES 32
#define CONFIGURATION(device) ((volatile uint32_t *)(0x30000000UL + ((unsigned long)(device) << 15)))
#define COMMAND (0x04 / 4)
#define COMMAND_MEMORY 2
/* QEMU's docs/specs/ivshmem-spec.txt: the memory is the second region, of 64 bits. */
#define IVSHMEM 0x11101af4
#define LOW (0x18 / 4)
#define HIGH (0x1c / 4)
#define FLAGS 0xf

/* Where the machine has room for devices' memory. */
#define WINDOW 0x40000000UL
#define WINDOW_LENGTH 0x40000000UL

void *board_shared_memory(size_t *length)
{
	int i;

	for (i = 0; i < DEVICES; i++) {
		volatile uint32_t *device = CONFIGURATION(i);
		uint64_t size;

		if (device[0] != IVSHMEM)
			continue;
		device[LOW] = ~0U;
		device[HIGH] = ~0U;
		size = -((uint64_t)device[HIGH] << 32 | (device[LOW] & ~FLAGS));
		/* Sizes are powers of two, and the window begins at a multiple of all that fit. */
		if (size > WINDOW_LENGTH)
			return NULL;
		device[LOW] = WINDOW;
		device[HIGH] = 0;
		device[COMMAND] |= COMMAND_MEMORY;
		*length = size;
		return (void *)WINDOW;
	}
	return NULL;
}
