// Plain calls in every shape the optimiser likes to change: recursion, mutual recursion,
// calls in tail position, functions it inlines, clones for a constant, drops an argument of,
// or calls through a pointer. Every optimisation level must give the same counts.
#include "counted.h"

static volatile long sink;

NOINLINE static long fibonacci(long n) {
    CALLED("fibonacci");
    return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2);
}

static long is_odd(long n);
NOINLINE static long is_even(long n) {
    CALLED("is_even");
    return n == 0 ? 1 : is_odd(n - 1);
}
NOINLINE static long is_odd(long n) {
    CALLED("is_odd");
    return n == 0 ? 0 : is_even(n - 1);
}

// Tail position: at -O2 an unhooked build jumps.
NOINLINE static long tail_end(long n) {
    CALLED("tail_end");
    return n + 5;
}
NOINLINE static long tail_middle(long n) {
    CALLED("tail_middle");
    return tail_end(n + 1);
}
NOINLINE static long tail_begin(long n) {
    CALLED("tail_begin");
    return tail_middle(n + 1);
}
NOINLINE static long tail_loop(long n, long sum) {
    CALLED("tail_loop");
    return n == 0 ? sum : tail_loop(n - 1, sum + n);
}

// To be cloned for the constant, and to lose the argument nobody uses.
NOINLINE static long scaled(long value, long factor, long unused) {
    CALLED("scaled");
    (void)unused;
    return value * factor;
}

// Nothing comes back, so that a caller's last act is the hook itself.
NOINLINE static void returns_nothing(void) {
    CALLED("returns_nothing");
    sink++;
}

NOINLINE static long through_pointer(long n) {
    CALLED("through_pointer");
    return n ^ 1;
}
static long (*volatile pointer)(long) = through_pointer;

// Two ways out and a loop.
NOINLINE static long early(long n) {
    CALLED("early");
    if (n % 3 == 0) return 7;
    for (long i = 0; i < n % 5; i++) returns_nothing();
    return n;
}

// Variadic and with a large return value: the hook must leave the registers alone.
NOINLINE static double mean(int count, ...) {
    CALLED("mean");
    __builtin_va_list list;
    __builtin_va_start(list, count);
    double sum = 0;
    for (int i = 0; i < count; i++) sum += __builtin_va_arg(list, double);
    __builtin_va_end(list);
    return sum / count;
}
struct large {
    double of[9];
};
NOINLINE static struct large make_large(double a, long double b, float c) {
    CALLED("make_large");
    struct large large = {{a, (double)b, c, a + 1, a + 2, a + 3, a + 4, a + 5, a + 6}};
    return large;
}

int main(int argc, char **argv) {
    CALLED("main");
    long rounds = counted_argument(argc, argv, 1, 1000);
    double numbers = 0;
    sink = fibonacci(20);
    for (long i = 0; i < rounds; i++) {
        long sum = is_even(i % 40) + is_odd(i % 7);
        sum += tail_begin(i) + tail_loop(i % 50, 0);
        sum += scaled(i, 3, 0) + scaled(i, 3, i);
        sum += pointer(i) + early(i);
        sink += sum;
        numbers += mean(4, 1.5, 2.5, 3.5, (double)i);
        struct large large = make_large((double)i, 2.25L, 1.5f);
        numbers += large.of[0] + large.of[1] + large.of[2] + large.of[8];
    }
    printf("result %ld %.3f\n", sink, numbers);
    fflush(stdout);
    counted_print();
    return 0;
}
