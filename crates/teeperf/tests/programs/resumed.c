// Interpreters without a frame, whose code is entered again at a label that the program keeps. What
// they work with lies below the stack pointer.
#include <stdio.h>

#define APART __attribute__((noinline, noclone))

struct machine {
    void *resume;
    long start;
};

APART static long run(struct machine *machine, const unsigned char *code) {
    static void *const labels[] = {&&stop, &&add, &&twice, &&yield};
    volatile long kept[8];
    for (int i = 0; i < 8; i++) kept[i] = machine->start + i;
    if (machine->resume) goto *machine->resume;
    goto *labels[*code++];
add:
    kept[7] += 5;
    goto *labels[*code++];
twice:
    kept[6] *= 2;
    goto *labels[*code++];
yield:
    machine->resume = labels[*code];
    return 1;
stop: {
    long sum = 0;
    for (int i = 0; i < 8; i++) sum += kept[i];
    machine->resume = 0;
    return sum;
}
}

// Code, or labels, in a section of the program's own. gcc names its flags the first time alone.
#define THREADED(name, code_section, labels_section)                          \
    APART code_section long name(void **code, long start, void ***labels) {   \
        static void *all[] labels_section = {&&add, &&twice, &&end};          \
        volatile long kept[8];                                                \
        if (labels) {                                                         \
            *labels = all;                                                    \
            return 0;                                                         \
        }                                                                     \
        for (int i = 0; i < 8; i++) kept[i] = start;                          \
        goto **code++;                                                        \
    add:                                                                      \
        kept[7] += 5;                                                         \
        goto **code++;                                                        \
    twice:                                                                    \
        kept[6] *= 2;                                                         \
        goto **code++;                                                        \
    end: {                                                                    \
        long sum = 0;                                                         \
        for (int i = 0; i < 8; i++) sum += kept[i];                           \
        return sum;                                                           \
    }                                                                         \
    }

THREADED(first, __attribute__((section("vmcode"))), )
APART long between(long x) { return x + 1; }
THREADED(second, __attribute__((section("vmcode"))), )
THREADED(third, , __attribute__((section("vmlabels"))))

// A jump by address that is a call, behind others that stay in the function.
APART long after(long x) { return x * 3; }
extern void fail(long) __attribute__((cold, noreturn));

APART long dispatch(void **code, long x, void ***labels, long (*next)(long)) {
    static void *all[] = {&&add, &&call};
    if (labels) {
        *labels = all;
        return 0;
    }
    if (__builtin_expect(x < 0, 0)) fail(x);
    goto **code++;
add:
    x++;
    goto **code++;
call:
    return next(x);
}

APART void fail(long x) {
    printf("%ld\n", x);
    __builtin_trap();
}

int main(void) {
    struct machine machine = {0, 3};
    long (*all[])(void **, long, void ***) = {first, second, third};
    long sum = 0;
    void **labels;
    for (int i = 0; i < 100; i++) {
        sum += run(&machine, (unsigned char[]){1, 3, 2});
        sum += run(&machine, (unsigned char[]){1, 0});
        for (int j = 0; j < 3; j++) {
            all[j](0, 0, &labels);
            void *code[] = {labels[0], labels[1], labels[0], labels[2]};
            sum += all[j](code, between(i), 0);
        }
        dispatch(0, 0, &labels, after);
        void *code[] = {labels[0], labels[0], labels[1]};
        sum += dispatch(code, i, 0, after);
    }
    printf("%ld\n", sum);
    return 0;
}
