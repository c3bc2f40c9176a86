/* Overflows a small stack, so many times, and jumps out of the handler of that, which keeps no signals
 * back and so has none to give free. Prints after how many jumps some were kept back. */
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define OUTSIDE __attribute__((no_instrument_function))

static jmp_buf out;
static volatile long sum, left;

__attribute__((noinline)) long down(long n)
{
	volatile char room[8];
	room[0] = (char)n;
	long all = down(n + 1) + room[0];
	sum++;
	return all;
}

OUTSIDE static void on_overflow(int number)
{
	(void)number;
	longjmp(out, 1);
}

OUTSIDE static void *overflow(void *times)
{
	static char room[65536];
	stack_t stack = {.ss_sp = room, .ss_size = sizeof room};
	struct sigaction action;
	sigaltstack(&stack, 0);
	memset(&action, 0, sizeof action);
	action.sa_handler = on_overflow;
	action.sa_flags = SA_ONSTACK | SA_NODEFER;
	sigaction(SIGSEGV, &action, 0);
	for (volatile long i = 0; i < (long)times; i++) {
		sigset_t now;
		if (!setjmp(out)) {
			/* So that it ends in other places. */
			volatile char *more = __builtin_alloca(16 * (i % 64) + 16);
			more[0] = 1;
			down(more[0]);
		}
		sigprocmask(SIG_BLOCK, 0, &now);
		if (sigismember(&now, SIGINT)) {
			left++;
			sigemptyset(&now);
			sigprocmask(SIG_SETMASK, &now, 0);
		}
	}
	return 0;
}

OUTSIDE int main(int argc, char **argv)
{
	long times = argc > 1 ? strtol(argv[1], 0, 10) : 1;
	pthread_attr_t small;
	pthread_t thread;
	pthread_attr_init(&small);
	pthread_attr_setstacksize(&small, 64 * 1024);
	if (pthread_create(&thread, &small, overflow, (void *)times) || pthread_join(thread, 0))
		return 2;
	printf("%ld\n", left);
	return 0;
}
