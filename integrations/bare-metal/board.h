/* What the image needs of QEMU's machine "virt". Nothing of it has hooks. */
#ifndef BOARD_H
#define BOARD_H

#include <stddef.h>
#include <stdint.h>

/* Counts of board_time() in a second. */
#define BOARD_HZ 10000000

/* Prints on the serial line; a number in decimal. */
void board_print(const char *text);
void board_print_number(long number);

/* The time since the machine was started, in counts. */
uint64_t board_time(void);

/* The memory of the device "ivshmem-plain", mapped; a null pointer where there is none. */
void *board_shared_memory(size_t *length);

/* From now on a timer interrupts every so many counts, and calls this; 0: no more. */
void board_interrupt_every(uint64_t counts, void (*call)(void));

/* Ends the emulator. */
void board_off(void);

#endif
