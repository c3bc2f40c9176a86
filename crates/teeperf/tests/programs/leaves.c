/* A function works, and leaves in a way that no hook sees: `leaves WAY TIMES`. All time is the worker's, but for very little.
 * What runs next calls a function at once, so that the next event is another function's. */
#include <pthread.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>
#define NOINLINE __attribute__((noinline))
#define UNHOOKED __attribute__((no_instrument_function))

static jmp_buf place;
static sigjmp_buf signals_place;
static ucontext_t main_context, other_context;
static int times;
static volatile int sum;

UNHOOKED static void *stack_of(size_t size) { return malloc(size); }

NOINLINE void next(int x) { sum += x; }
/* 20 microseconds or so. */
UNHOOKED static inline void work(void) { for (volatile int i = 0; i < 10000; i++) continue; }

NOINLINE void worker(const char *way) {
	next(1);
	work();
	if (!strcmp(way, "longjmp")) longjmp(place, 1);
	if (!strcmp(way, "_longjmp")) _longjmp(place, 1);
	if (!strcmp(way, "siglongjmp")) siglongjmp(signals_place, 1);
	if (!strcmp(way, "setcontext")) setcontext(&main_context);
}

NOINLINE void catcher(const char *way) {
	for (volatile int i = 0; i < times; i = i + 1) {
		if (!strcmp(way, "setcontext")) {
			volatile int is_back = 0;
			getcontext(&main_context);
			if (!is_back) {
				is_back = 1;
				worker(way);
			}
		} else if (!strcmp(way, "siglongjmp")) {
			if (!sigsetjmp(signals_place, 1)) worker(way);
		} else if (!strcmp(way, "longjmp")) {
			if (!setjmp(place)) worker(way);
		} else if (!_setjmp(place)) {
			worker(way);
		}
		next(2);
	}
}

NOINLINE void idler(void) {
	for (;;) {
		next(3);
		swapcontext(&other_context, &main_context);
	}
}
NOINLINE void switcher(void) {
	for (int i = 0; i < times; i++) {
		next(4);
		work();
		swapcontext(&main_context, &other_context);
	}
}

/* Over and over: a coroutine that works and ends, so that its link runs. */
NOINLINE void ends(void) {
	next(5);
	work();
}
NOINLINE void waits(void) {
	for (int i = 0; i < times; i++) {
		getcontext(&other_context);
		other_context.uc_link = &main_context;
		makecontext(&other_context, ends, 0);
		swapcontext(&main_context, &other_context);
		next(6);
	}
}

NOINLINE void child(void) {
	next(7);
	for (int i = 0; i < 600; i++) work();
	_exit(0);
}
NOINLINE void parent(void) {
	for (int i = 0; i < times / 600; i++) {
		pid_t pid = vfork();
		if (!pid) child();
		next(8);
		waitpid(pid, NULL, 0);
	}
}

int main(int count, char **words) {
	const char *way = words[1];
	times = atoi(words[count - 1]);
	other_context.uc_stack.ss_size = 65536;
	if (!strcmp(way, "swapcontext")) {
		getcontext(&other_context);
		other_context.uc_stack.ss_size = 65536;
		other_context.uc_stack.ss_sp = stack_of(65536);
		makecontext(&other_context, idler, 0);
		switcher();
	} else if (!strcmp(way, "uc_link")) {
		getcontext(&other_context);
		other_context.uc_stack.ss_size = 65536;
		other_context.uc_stack.ss_sp = stack_of(65536);
		waits();
	} else if (!strcmp(way, "vfork")) {
		parent();
	} else {
		catcher(way);
	}
	printf("%d\n", sum);
	return 0;
}
