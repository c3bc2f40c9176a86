// Coroutines whose stacks a few instructions switch, as libco, minicoro and others do it: no hook and no wrapper sees that.
// `fibers ROUNDS THREADS COROUTINES STACK`: each thread has so many coroutines, on stacks of so many bytes that lie side by
// side. With -DSAYS_SO the program tells where it goes, by teeperf.h; with -DSAYS_WHERE, where its
// stacks are. With -DMADE the instructions that switch are made while the program runs.
#include "paths.h"
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#if defined SAYS_SO || defined SAYS_WHERE
#include <teeperf.h>
#endif

struct fiber {
    void *pointer;
    char *memory;
    struct path *path;
    void (*body)(struct fiber *);
    int number, is_done;
};
static __thread struct fiber leader, *running;
static long rounds, size;
static int fibers, threads;

#ifdef MADE
// What the assembler makes of the text below.
static const unsigned char instructions[] = {
    0x55, 0x53, 0x41, 0x54, 0x41, 0x55, 0x41, 0x56, 0x41, 0x57, 0x48, 0x89, 0x27, 0x48,
    0x89, 0xf4, 0x41, 0x5f, 0x41, 0x5e, 0x41, 0x5d, 0x41, 0x5c, 0x5b, 0x5d, 0xc3,
};
static void (*fiber_switch)(void **from, void *to);
#else
void fiber_switch(void **from, void *to);
__asm__(".text\n.globl fiber_switch\nfiber_switch:\n push %rbp\n push %rbx\n push %r12\n push %r13\n push %r14\n"
        " push %r15\n mov %rsp,(%rdi)\n mov %rsi,%rsp\n pop %r15\n pop %r14\n pop %r13\n pop %r12\n pop %rbx\n"
        " pop %rbp\n ret\n");
#endif

UNHOOKED __attribute__((noinline)) static void go(struct fiber *to) {
    struct fiber *from = running;
    from->path = path_here;
    path_here = to->path;
    running = to;
#ifdef SAYS_SO
    teeperf_stack_enter(to == &leader ? 0 : (unsigned long long)to->memory);
#endif
    fiber_switch(&from->pointer, to->pointer);
}

NOINLINE static void item(void) { ENTER("item"); LEAVE(); }
NOINLINE static void used(void) { ENTER("used"); LEAVE(); }
NOINLINE static void deep(int depth) {
    ENTER("deep");
    if (depth) deep(depth - 1);
    else go(&leader);
    item();
    LEAVE();
}
// A frame as large as some pages, where there is room for it.
NOINLINE static void large(void) {
    ENTER("large");
    volatile char room[9000];
    room[0] = room[8999] = 1;
    item();
    go(&leader);
    item();
    LEAVE();
}
NOINLINE static void even(struct fiber *me) {
    ENTER("even");
    for (int i = 0; i < 40; i++) {
        item();
        deep((me->number + i) % 4);
        if (size > 30000) large();
        go(&leader);
    }
    LEAVE();
}
// Has no event of its own before it leaves for the first time.
NOINLINE static void odd(struct fiber *me) {
    ENTER("odd");
    (void)me;
    for (int i = 0; i < 25; i++) {
        go(&leader);
        item();
        deep(i % 3);
    }
    LEAVE();
}
// The lowest frame, which never returns.
NOINLINE static void first(void) {
    ENTER("first");
    struct fiber *me = running;
    me->body(me);
    me->is_done = 1;
    for (;;) go(&leader);
}

// Begins in memory that may have been another's.
UNHOOKED static void begin(struct fiber *me, int number) {
    me->number = number;
    me->body = number % 2 ? odd : even;
    me->path = NULL;
    me->is_done = 0;
    void **top = (void **)(me->memory + size);
    *--top = 0;
    *--top = (void *)first;
    for (int i = 0; i < 6; i++) *--top = 0;
    me->pointer = top;
#ifdef SAYS_SO
    teeperf_stack_new((unsigned long long)me->memory);
#endif
#ifdef SAYS_WHERE
    teeperf_stack_memory(me->memory, (unsigned long)size);
#endif
}

// Handlers, on a stack of their own, are no coroutines: they run on top of whatever they interrupt.
static volatile int handled;
NOINLINE static void handler(int number) {
    ENTER("handler");
    (void)number;
    handled++;
    item();
    LEAVE();
}

NOINLINE static void all(struct fiber *which, long round) {
    ENTER("all");
    for (int i = 0; i < fibers; i++) {
        if (which[i].is_done) begin(&which[i], (int)(i + round));
        go(&which[i]);
        used();
    }
    if (round % 7 == 0) raise(SIGUSR1);
    LEAVE();
}
NOINLINE static void *work(void *unused) {
    ENTER("work");
    (void)unused;
    running = &leader;
    stack_t signals = { .ss_sp = malloc(65536), .ss_size = 65536 };
    sigaltstack(&signals, NULL);
    struct fiber *own = calloc(fibers, sizeof *own);
    char *memory = aligned_alloc(16, (size_t)(fibers * size));
    for (int i = 0; i < fibers; i++) {
        own[i].memory = memory + i * size;
        begin(&own[i], i);
    }
    for (long i = 0; i < rounds; i++) all(own, i);
    LEAVE();
    return NULL;
}

int main(int argc, char **argv) {
    ENTER("main");
    rounds = counted_argument(argc, argv, 1, 1000);
    threads = (int)counted_argument(argc, argv, 2, 1);
    fibers = (int)counted_argument(argc, argv, 3, 2);
    size = counted_argument(argc, argv, 4, 65536);
#ifdef MADE
    int rights = PROT_READ | PROT_WRITE | PROT_EXEC;
    void *made = mmap(NULL, 4096, rights, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    memcpy(made, instructions, sizeof instructions);
    memcpy(&fiber_switch, &made, sizeof made);
#endif
    struct sigaction action = { .sa_handler = handler, .sa_flags = SA_ONSTACK };
    sigaction(SIGUSR1, &action, NULL);
    // The first thread works as well, on the stack that the kernel gave it.
    pthread_t other[16];
    for (int i = 1; i < threads; i++) pthread_create(&other[i], NULL, work, NULL);
    work(NULL);
    for (int i = 1; i < threads; i++) pthread_join(other[i], NULL);
    paths_print();
    LEAVE();
    return 0;
}
