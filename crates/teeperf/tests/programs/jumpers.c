// Coroutines as QEMU has them: a stack is begun by makecontext, and from then on threads go from one to another by
// sigsetjmp and siglongjmp. `jumpers ROUNDS THREADS COROUTINES`: each thread has so many of its own.
#include "paths.h"
#include <setjmp.h>
#include <ucontext.h>

enum { STACK = 64 * 1024 };
struct coroutine {
    sigjmp_buf place;
    void (*body)(struct coroutine *);
    struct coroutine *caller;
    struct path *path;
    int number;
};
static __thread struct coroutine leader, *running;
static __thread ucontext_t creator;
static __thread struct coroutine *created;
static long rounds;
static int coroutines, threads;

// The model's path is the coroutine's.
UNHOOKED __attribute__((noinline)) static void go_from(struct coroutine *from, struct coroutine *to) {
    struct path *here = path_here;
    if (!sigsetjmp(from->place, 0)) {
        running = to;
        path_here = NULL;
        siglongjmp(to->place, 1);
    }
    path_here = here;
}
UNHOOKED static void enter_it(struct coroutine *to) {
    to->caller = running;
    go_from(running, to);
}
UNHOOKED static void yield_it(void) {
    struct coroutine *me = *(struct coroutine *volatile *)&running;
    go_from(me, me->caller);
}

NOINLINE static void item(void) { ENTER("item"); LEAVE(); }
NOINLINE static void used(void) { ENTER("used"); LEAVE(); }
NOINLINE static void deep(int depth) {
    ENTER("deep");
    if (depth) deep(depth - 1);
    else yield_it();
    item();
    LEAVE();
}
NOINLINE static void even(struct coroutine *me) {
    ENTER("even");
    for (int i = 0;; i++) {
        item();
        deep((me->number + i) % 4);
    }
}
NOINLINE static void odd(struct coroutine *me) {
    ENTER("odd");
    for (int i = 0;; i++) {
        item();
        yield_it();
        deep(i % 3);
    }
}

NOINLINE static void first(void) {
    struct coroutine *me = created;
    path_here = NULL;
    ENTER("first");
    if (!sigsetjmp(me->place, 0)) setcontext(&creator);
    I_AM_HERE();
    me->body(me);
    LEAVE();
}
UNHOOKED static void create(struct coroutine *me, int number) {
    static __thread ucontext_t context;
    struct path *here = path_here;
    me->number = number;
    me->body = number % 2 ? odd : even;
    getcontext(&context);
    context.uc_stack.ss_sp = malloc(STACK);
    context.uc_stack.ss_size = STACK;
    created = me;
    makecontext(&context, first, 0);
    swapcontext(&creator, &context);
    path_here = here;
}

NOINLINE static void all(struct coroutine *which) {
    ENTER("all");
    for (int i = 0; i < coroutines; i++) {
        enter_it(&which[i]);
        used();
    }
    LEAVE();
}
NOINLINE static void *work(void *unused) {
    ENTER("work");
    (void)unused;
    running = &leader;
    struct coroutine *own = calloc(coroutines, sizeof *own);
    for (int i = 0; i < coroutines; i++) create(&own[i], i);
    for (long i = 0; i < rounds; i++) all(own);
    LEAVE();
    return NULL;
}

int main(int argc, char **argv) {
    ENTER("main");
    rounds = counted_argument(argc, argv, 1, 1000);
    threads = (int)counted_argument(argc, argv, 2, 1);
    coroutines = (int)counted_argument(argc, argv, 3, 2);
    pthread_t other[16];
    for (long i = 0; i < threads; i++) pthread_create(&other[i], NULL, work, NULL);
    for (int i = 0; i < threads; i++) pthread_join(other[i], NULL);
    paths_print();
    LEAVE();
    return 0;
}
