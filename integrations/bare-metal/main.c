/* Attaches the memory that the host lends, works, and says what a recording of it must show. Compiled without hooks. */
#include <teeperf_tee.h>

#include "board.h"
#include "work.h"

#define ROUNDS 20000

static volatile long beats;

static void on_interrupt(void)
{
	beat();
	beats++;
}

static void say(const char *text, long number)
{
	board_print(text);
	board_print_number(number);
	board_print("\n");
}

int main(void)
{
	size_t length = 0;
	void *shared = board_shared_memory(&length);
	int refused = teeperf_attach(shared, length);

	say("bytes of shared memory: ", length);
	if (refused) {
		say("teeperf_attach: ", refused);
		return 1;
	}
	waits();
	/* Every 100 us, so that many interrupt a hook. */
	board_interrupt_every(BOARD_HZ / 10000, on_interrupt);
	rounds(ROUNDS);
	board_interrupt_every(0, 0);
	teeperf_detach();
	say("interrupts: ", beats);
	return 0;
}
