// Shapes of functions that hooks in assembly have to get right: each counts its calls, and what it
// makes of its arguments goes into a sum that is printed. Calls in tail position may be jumps.
#include "counted.h"
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <sys/wait.h>

static volatile unsigned long sum = 1;
static jmp_buf back;

UNHOOKED static void mix(unsigned long value) { sum = (sum ^ value) * 0x100000001b3; }

NOCLONE static long leaf(long x) { CALLED("leaf"); return x * 3; }
NOCLONE static double real(double a, float b) { CALLED("real"); return a * b; }

// al has the number of vector registers.
NOCLONE static double variadic(int count, ...) {
    CALLED("variadic");
    va_list list;
    double all = 0;
    va_start(list, count);
    for (int i = 0; i < count; i++) all += i % 2 ? va_arg(list, double) : va_arg(list, long);
    va_end(list);
    return all;
}

// Two registers of each kind come back.
struct pair { long a; double b; };
NOCLONE static struct pair pairs(long a, double b) {
    CALLED("pairs");
    return (struct pair){a + 1, b + 1};
}
NOCLONE static __int128 wide(long a, long b) { CALLED("wide"); return (__int128)a << 64 | b; }
NOCLONE static long double longer(long a) { CALLED("longer"); return a / 3.0L; }

// Jumps in the place of calls and returns: to a name, by address, on a condition.
static long (*volatile pointer)(long) = leaf;
NOCLONE static long tail_direct(long x) { CALLED("tail_direct"); return leaf(x + 1); }
NOCLONE static long tail_by_address(long x) { CALLED("tail_by_address"); return pointer(x + 2); }
NOCLONE static long tail_by_condition(long x) {
    CALLED("tail_by_condition");
    if (x & 1) return leaf(x);
    return x;
}
NOCLONE static long odd(long n);
NOCLONE static long even(long n) { CALLED("even"); return n == 0 ? 1 : odd(n - 1); }
NOCLONE static long odd(long n) { CALLED("odd"); return n == 0 ? 0 : even(n - 1); }

// A table of jumps, beside a jump by address that leaves.
NOCLONE static long chooses(long x, long (*other)(long)) {
    CALLED("chooses");
    switch (x) {
    case 0: return 7;
    case 1: mix(11); return 1;
    case 2: return other(x);
    case 3: mix(13); break;
    case 4: return leaf(4);
    case 5: mix(17); mix(19); return x;
    case 6: return other(9);
    case 7: sum += 3; break;
    }
    return x + 1;
}

// Addresses of its own code, with no frame.
NOCLONE static long interprets(const unsigned char *code, long x) {
    CALLED("interprets");
    static void *const labels[] = {&&end, &&add, &&twice, &&less};
    goto *labels[*code];
add: x += 5; goto *labels[*++code];
twice: x *= 2; goto *labels[*++code];
less: x -= 3; goto *labels[*++code];
end: return x;
}

// A part that seldom runs stands elsewhere.
NOCLONE static long seldom(long x) {
    CALLED("seldom");
    if (__builtin_expect(x % 97 == 0, 0)) {
        mix((unsigned long)x);
        if (x % 2) return leaf(x) + variadic(2, 1L, 2.0);
        mix(5);
        return leaf(x);
    }
    return x;
}

// It has its own caller's frame, by r10.
#ifndef __clang__
NOCLONE static long with_nested(long x) {
    CALLED("with_nested");
    NOINLINE long nested(long y) { CALLED("nested.0"); return y * x + 1; }
    long (*volatile of_address)(long) = nested;
    return of_address(2) + nested(3);
}
#else
UNHOOKED NOCLONE static long with_nested(long x) { return x; }
#endif

// All of it is by hand, and so is its convention, with an argument in r11: no hook.
__attribute__((naked, used, noinline)) long by_hand(void) { __asm__("lea 1(%r11), %rax\n\tret"); }
NOCLONE static long calls_by_hand(long x) {
    CALLED("calls_by_hand");
    long result;
    __asm__ volatile("sub $128, %%rsp\n\tmov %1, %%r11\n\tcall by_hand\n\tadd $128, %%rsp"
                     : "=a"(result)
                     : "D"(x)
                     : "r11", "memory", "cc");
    return result;
}

// Assembly that calls.
__attribute__((used)) NOCLONE long from_assembly(long x) { CALLED("from_assembly"); return x + 40; }
NOCLONE static long calls_from_assembly(long x) {
    CALLED("calls_from_assembly");
    long result;
    // What it calls may use the stack below it, so not the 128 bytes that may be in use there.
    __asm__ volatile("sub $128, %%rsp\n\tcall from_assembly\n\tadd $128, %%rsp"
                     : "=a"(result), "+D"(x)
                     :
                     : "rcx", "rdx", "rsi", "r8", "r9", "r10", "r11", "memory", "cc", "xmm0", "xmm1", "xmm2",
                       "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10", "xmm11", "xmm12", "xmm13",
                       "xmm14", "xmm15");
    return result;
}

#ifdef __clang__
#define CONVENTION(name) __attribute__((name))
#define MANY "__regcall3__many"
#else
#define CONVENTION(name)
#define MANY "many"
#endif
// Callers count on all registers but r11.
CONVENTION(preserve_most) NOCLONE static void keeps_most(long x) { CALLED("keeps_most"); mix((unsigned long)x); }
CONVENTION(preserve_all) NOCLONE static void keeps_all(long x) { CALLED("keeps_all"); mix((unsigned long)x); }
CONVENTION(regcall) NOCLONE static long many(long a, long b, long c, long d, long e, long f, long g, long h) {
    // As the linker knows it.
    CALLED(MANY);
    return a + 2 * b + 3 * c + 4 * d + 5 * e + 6 * f + 7 * g + 8 * h;
}
__attribute__((ms_abi)) NOCLONE static long as_elsewhere(long a, double b, long c) {
    CALLED("as_elsewhere");
    return a + (long)b + c;
}

NOCLONE static void jumps(long x) { CALLED("jumps"); if (x) longjmp(back, (int)x); }
NOCLONE static long marks(long x) {
    CALLED("marks");
    volatile long kept = x;
    int came = setjmp(back);
    if (came) return kept + came;
    jumps(x % 3);
    return kept;
}

NOCLONE static void handler(int number) { CALLED("handler"); mix((unsigned long)number); }

NOCLONE static long child(void) {
    CALLED("child");
    pid_t pid = vfork();
    if (pid == 0) _exit(3);
    int status = 0;
    waitpid(pid, &status, 0);
    return WEXITSTATUS(status);
}

int main(int argc, char **argv) {
    CALLED("main");
    long rounds = counted_argument(argc, argv, 1, 300);
    const unsigned char code[] = {1, 2, 3, 1, 0};
    signal(SIGUSR1, handler);
    for (long i = 0; i < rounds; i++) {
        struct pair pair = pairs(i, 0.5);
        mix((unsigned long)leaf(i));
        mix((unsigned long)real(i, 2));
        mix((unsigned long)variadic(4, i, 1.5, 2L, (double)i));
        mix((unsigned long)variadic(0));
        mix((unsigned long)(pair.a + (long)pair.b));
        mix((unsigned long)(wide(i, 5) >> 60));
        mix((unsigned long)longer(i));
        mix((unsigned long)(tail_direct(i) + tail_by_address(i) + tail_by_condition(i)));
        mix((unsigned long)even(i % 7));
        mix((unsigned long)(chooses(i % 9, leaf) + interprets(code, i) + seldom(i)));
        mix((unsigned long)(with_nested(i) + calls_by_hand(i) + calls_from_assembly(i)));
        long a = i, b = i * 3, c = i ^ 5;
        keeps_most(a);
        keeps_all(b);
        mix((unsigned long)(a + b + c + many(a, b, c, 4, 5, 6, 7, 8) + as_elsewhere(a, 2.5, c)));
        mix((unsigned long)marks(i));
        if (i % 16 == 0) raise(SIGUSR1);
    }
    mix((unsigned long)child());
    printf("sum %lx\n", sum);
    fflush(stdout);
    counted_print();
    return 0;
}
