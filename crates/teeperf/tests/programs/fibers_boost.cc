// Coroutines of boost.context: generators and their consumer, one inside another, and one that ends early.
#include "paths.h"
#include <boost/context/fiber.hpp>
#include <boost/context/protected_fixedsize_stack.hpp>
#include <vector>
namespace context = boost::context;

#ifdef SAYS_WHERE
#include <teeperf.h>
/* As docs/recording.md has it, of either allocator. */
template <class Allocator> struct told_stack : Allocator {
    using Allocator::Allocator;
    context::stack_context allocate() {
        auto stack = Allocator::allocate();
        teeperf_stack_memory((char *)stack.sp - stack.size, stack.size);
        return stack;
    }
};
#else
template <class Allocator> using told_stack = Allocator;
#endif

static long rounds;

struct coroutine {
    context::fiber fiber;
    struct path *path = nullptr;
    int value = 0;
};
static thread_local coroutine *running;

// The model's path goes with the stack.
UNHOOKED static void resume(coroutine &which) {
    struct path *here = path_here;
    coroutine *before = running;
    path_here = which.path;
    running = &which;
    which.fiber = std::move(which.fiber).resume();
    running = before;
    path_here = here;
}
UNHOOKED static void yield_to(context::fiber &caller, coroutine *me) {
    me->path = path_here;
    caller = std::move(caller).resume();
    path_here = me->path;
}

NOINLINE static void item() { ENTER("item"); LEAVE(); }
NOINLINE static void used() { ENTER("used"); LEAVE(); }
NOINLINE static void produces(context::fiber &caller, coroutine *me, int depth) {
    ENTER("produces");
    if (depth) produces(caller, me, depth - 1);
    else yield_to(caller, me);
    item();
    LEAVE();
}
NOINLINE static void source(context::fiber &caller, coroutine *me) {
    ENTER("source");
    for (int i = 0;; i++) {
        item();
        produces(caller, me, i % 4);
    }
}
NOINLINE static void ends(context::fiber &caller, coroutine *me) {
    ENTER("ends");
    item();
    yield_to(caller, me);
    item();
    LEAVE();
}

template <class Stack> UNHOOKED static void make(coroutine *me, void (*body)(context::fiber &, coroutine *), Stack stack) {
    me->path = nullptr;
    me->fiber = context::fiber(std::allocator_arg, stack, [me, body](context::fiber &&caller) __attribute__((no_instrument_function)) {
        context::fiber to = std::move(caller);
        body(to, me);
        me->path = nullptr;
        return to;
    });
}

NOINLINE static void consumer(std::vector<coroutine> &sources) {
    ENTER("consumer");
    for (auto &source : sources) {
        resume(source);
        used();
    }
    LEAVE();
}
NOINLINE static void short_ones() {
    ENTER("short_ones");
    coroutine one;
    make(&one, ends, told_stack<context::fixedsize_stack>(64 * 1024));
    while (one.fiber) {
        resume(one);
        used();
    }
    LEAVE();
}

int main(int argc, char **argv) {
    ENTER("main");
    rounds = counted_argument(argc, argv, 1, 1000);
    std::vector<coroutine> sources(6);
    for (auto &one : sources) {
        if (&one - sources.data() < 3) make(&one, source, told_stack<context::fixedsize_stack>(128 * 1024));
        else make(&one, source, told_stack<context::protected_fixedsize_stack>(64 * 1024));
    }
    for (long i = 0; i < rounds; i++) {
        consumer(sources);
        if (i % 10 == 0) short_ones();
    }
    paths_print();
    // What is still open is not unwound.
    fflush(stdout);
    _exit(0);
}
