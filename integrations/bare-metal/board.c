/* Addresses are those of QEMU's hw/riscv/virt.c. */
#include "board.h"

#define UART ((volatile uint8_t *)0x10000000)
#define UART_STATUS 5
#define UART_IS_EMPTY 0x20

#define FINISHER ((volatile uint32_t *)0x100000)
#define FINISHER_PASS 0x5555

#define TIMER_COMPARE ((volatile uint64_t *)0x2004000)
#define TIMER_INTERRUPT (1 << 7)
#define INTERRUPTS_ON (1 << 3)
#define CAUSE_OF_TIMER (1UL << 63 | 7)

void board_print(const char *text)
{
	for (; *text; text++) {
		while (!(UART[UART_STATUS] & UART_IS_EMPTY))
			;
		*UART = *text;
	}
}

void board_print_number(long number)
{
	char digits[21];
	char *at = digits + sizeof(digits) - 1;
	unsigned long rest = number < 0 ? -(unsigned long)number : (unsigned long)number;

	*at = 0;
	do
		*--at = '0' + rest % 10;
	while (rest /= 10);
	if (number < 0)
		*--at = '-';
	board_print(at);
}

uint64_t board_time(void)
{
	uint64_t now;

	__asm__ volatile("rdtime %0" : "=r"(now));
	return now;
}

void board_off(void)
{
	*FINISHER = FINISHER_PASS;
}

static uint64_t every;
static void (*called)(void);

/* mtvec leads here. The compiler saves every register that what is called may change. */
__attribute__((interrupt("machine"), aligned(4))) void on_trap(void)
{
	unsigned long cause;

	__asm__ volatile("csrr %0, mcause" : "=r"(cause));
	if (cause != CAUSE_OF_TIMER) {
		board_print("a trap: mcause ");
		board_print_number(cause);
		board_print("\n");
		board_off();
		for (;;)
			;
	}
	*TIMER_COMPARE = board_time() + every;
	called();
}

void board_interrupt_every(uint64_t counts, void (*call)(void))
{
	__asm__ volatile("csrc mstatus, %0" : : "r"(INTERRUPTS_ON) : "memory");
	if (!counts) {
		__asm__ volatile("csrc mie, %0" : : "r"(TIMER_INTERRUPT));
		return;
	}
	every = counts;
	called = call;
	*TIMER_COMPARE = board_time() + counts;
	__asm__ volatile("csrs mie, %0" : : "r"(TIMER_INTERRUPT));
	__asm__ volatile("csrs mstatus, %0" : : "r"(INTERRUPTS_ON) : "memory");
}
