// Ways out that no hook sees, by longjmp: over one frame, over hundreds, to the same place
// again and again, to an outer place over an inner one, out of a signal handler, and by
// every name the C library has for it.
#include "paths.h"
#include <setjmp.h>
#include <signal.h>

static jmp_buf outer, inner;
static sigjmp_buf from_signal;
static volatile int deep;

NOINLINE static void leaf(void) {
    ENTER("leaf");
    LEAVE();
}

NOINLINE static void descend(int frames, jmp_buf *to, int value) {
    ENTER("descend");
    leaf();
    if (frames == 0) longjmp(*to, value);
    descend(frames - 1, to, value);
    deep++;
    LEAVE();
}

// Jumps as often as it is told to, back to one setjmp.
NOINLINE static void again_and_again(int times, int frames) {
    ENTER("again_and_again");
    volatile int jumps = 0;
    if (setjmp(outer)) {
        I_AM_HERE();
        jumps++;
    }
    leaf();
    if (jumps < times) descend(frames, &outer, 1);
    leaf();
    LEAVE();
}

// The inner buffer is used, then the outer one over it.
NOINLINE static void inside(int use_outer) {
    ENTER("inside");
    if (setjmp(inner)) {
        I_AM_HERE();
        leaf();
        if (use_outer) descend(3, &outer, 2);
        LEAVE();
        return;
    }
    descend(5, &inner, 1);
    LEAVE();
}
NOINLINE static void nested(int use_outer) {
    ENTER("nested");
    if (setjmp(outer)) {
        I_AM_HERE();
        leaf();
        LEAVE();
        return;
    }
    inside(use_outer);
    leaf();
    LEAVE();
}

// A setjmp whose function returned normally, and one at the same depth used afterwards.
NOINLINE static int marks_only(void) {
    ENTER("marks_only");
    jmp_buf unused;
    int value = setjmp(unused);
    leaf();
    LEAVE();
    return value;
}

NOINLINE static void handler(int number) {
    ENTER("handler");
    leaf();
    if (number == SIGUSR1) siglongjmp(from_signal, 1);
    LEAVE();
}
NOINLINE static void raises(int number) {
    ENTER("raises");
    leaf();
    raise(number);
    leaf();
    LEAVE();
}
NOINLINE static void out_of_a_handler(void) {
    ENTER("out_of_a_handler");
    if (sigsetjmp(from_signal, 1)) {
        I_AM_HERE();
        leaf();
    } else {
        raises(SIGUSR1);
    }
    raises(SIGUSR2);
    leaf();
    LEAVE();
}

// The names without the signal mask.
NOINLINE static void other_names(void) {
    ENTER("other_names");
    jmp_buf here;
    volatile int times = 0;
    int value = _setjmp(here);
    if (value) I_AM_HERE();
    leaf();
    if (times++ < 3) _longjmp(here, times);
    sigjmp_buf there;
    times = 0;
    value = sigsetjmp(there, 0);
    if (value) I_AM_HERE();
    if (times++ < 3) siglongjmp(there, times);
    LEAVE();
}

int main(int argc, char **argv) {
    ENTER("main");
    int rounds = (int)counted_argument(argc, argv, 1, 50);
    signal(SIGUSR1, handler);
    signal(SIGUSR2, handler);
    for (int i = 0; i < rounds; i++) {
        again_and_again(i % 7, i % 3 ? 1 : 200);
        nested(i & 1);
        if (marks_only()) abort();
        out_of_a_handler();
        other_names();
    }
    paths_print();
    LEAVE();
    return 0;
}
