// Stacks of their own by ucontext: two that call each other in turn, one that ends through
// uc_link, one that is left behind, all from functions several calls deep.
#include "paths.h"
#include <ucontext.h>

enum { STACK = 64 * 1024 };
static ucontext_t main_context, ping_context, pong_context, linked_context, left_context;
static int rounds;

NOINLINE static void leaf(void) {
    ENTER("leaf");
    LEAVE();
}

// What a coroutine's model needs on both sides of a switch.
UNHOOKED static void go(ucontext_t *from, ucontext_t *to) {
    struct path *here = path_here;
    path_here = NULL;
    if (swapcontext(from, to)) abort();
    path_here = here;
}

NOINLINE static void ping_inner(int i) {
    ENTER("ping_inner");
    leaf();
    if (i % 2) go(&ping_context, &pong_context);
    leaf();
    LEAVE();
}
NOINLINE static void ping(void) {
    path_here = NULL;
    ENTER("ping");
    for (int i = 0; i < rounds; i++) {
        ping_inner(i);
        go(&ping_context, &pong_context);
        leaf();
    }
    LEAVE();
    // Ends through uc_link, which is the main context.
}

NOINLINE static void pong_inner(int depth) {
    ENTER("pong_inner");
    if (depth) pong_inner(depth - 1);
    else go(&pong_context, &ping_context);
    leaf();
    LEAVE();
}
NOINLINE static void pong(void) {
    path_here = NULL;
    ENTER("pong");
    for (int i = 0;; i++) {
        leaf();
        pong_inner(i % 5);
    }
}

NOINLINE static void linked(int a, int b) {
    path_here = NULL;
    ENTER("linked");
    if (a != 3 || b != 4) abort();
    leaf();
    LEAVE();
}

// Left by setcontext in the middle, never entered again.
NOINLINE static void left_behind(void) {
    path_here = NULL;
    ENTER("left_behind");
    leaf();
    setcontext(&main_context);
}

UNHOOKED static void make(ucontext_t *context, void (*start)(void), ucontext_t *then) {
    getcontext(context);
    context->uc_stack.ss_sp = malloc(STACK);
    context->uc_stack.ss_size = STACK;
    context->uc_link = then;
    if (context != &linked_context) makecontext(context, start, 0);
    else makecontext(context, start, 2, 3, 4);
}

NOINLINE static void runs(ucontext_t *context) {
    ENTER("runs");
    leaf();
    go(&main_context, context);
    leaf();
    LEAVE();
}

int main(int argc, char **argv) {
    ENTER("main");
    rounds = (int)counted_argument(argc, argv, 1, 1000);
    make(&ping_context, ping, &main_context);
    make(&pong_context, pong, &main_context);
    runs(&ping_context);
    for (int i = 0; i < rounds; i++) {
        // The same stack again and again, each time with a new function on it.
        if (i == 0) make(&linked_context, (void (*)(void))linked, &main_context);
        linked_context.uc_link = &main_context;
        makecontext(&linked_context, (void (*)(void))linked, 2, 3, 4);
        runs(&linked_context);
    }
    for (int i = 0; i < 3; i++) {
        make(&left_context, left_behind, NULL);
        runs(&left_context);
    }
    paths_print();
    LEAVE();
    return 0;
}
