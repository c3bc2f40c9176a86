// A random walk through everything at once: calls, longjmp to any setjmp that is still
// there, exceptions to any catch, signal handlers and jumps out of them, coroutines that
// yield, end or are left behind, recording switched off and on. All of it kept in the slow
// model. Arguments: seed, steps, what is allowed (letters: j jumps, x exceptions, s signals,
// c coroutines, p pauses).
#include "paths.h"
#include <setjmp.h>
#include <signal.h>
#include <ucontext.h>

#if __has_include(<teeperf.h>)
#include <teeperf.h>
#else
UNHOOKED static void teeperf_pause(void) {}
UNHOOKED static void teeperf_resume(void) {}
#endif

// One stack, the thread's own or a coroutine's, and what may be done on it.
struct World {
    sigjmp_buf *marks[64];
    int mark_count;
    int catch_count;
    World *caller;
    ucontext_t context;
    bool ended;
};
static World main_world;
static World *world = &main_world;
static unsigned long state;
static long steps;
static int depth_below;
static bool off, may_jump, may_throw, may_signal, may_switch, may_pause;

UNHOOKED static unsigned long next_random() {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state;
}
UNHOOKED static bool one_in(int n) { return next_random() % (unsigned)n == 0; }

UNHOOKED static struct path *perhaps_enter(const char *name) {
    struct path *at = path_enter(off ? "[...]" : name);
    if (off) at->calls--;
    return at;
}
#define STEP(name) struct path *const self_ __attribute__((unused)) = perhaps_enter(name)

extern "C" {
static void red(int), green(int), blue(int), jumper(int), catcher(int), caller_of(int), raiser(int);

UNHOOKED static void toggle() {
    off = !off;
    if (off) teeperf_pause();
    else teeperf_resume();
}

// Back to whoever made this coroutine run.
UNHOOKED static void yield() {
    World *from = world, *to = world->caller;
    struct path *here = path_here;
    world = to;
    swapcontext(&from->context, &to->context);
    world = from;
    path_here = here;
}

UNHOOKED static void wander(int depth) {
    while (steps > 0 && next_random() % 100 < 60) {
        steps--;
        if (may_pause && one_in(20)) toggle();
        if (may_jump && world->mark_count && one_in(25))
            siglongjmp(*world->marks[next_random() % (unsigned)world->mark_count], 1);
        if (may_throw && world->catch_count && one_in(25)) throw 1;
        if (may_switch && world->caller && one_in(12)) yield();
        if (depth > 60) return;
        switch (next_random() % 8) {
        case 0: jumper(depth + 1); break;
        case 1: catcher(depth + 1); break;
        case 2: if (may_signal) raiser(depth + 1); else red(depth + 1); break;
        case 3: if (may_switch && depth < 20) caller_of(depth + 1); else green(depth + 1); break;
        case 4: red(depth + 1); break;
        case 5: green(depth + 1); break;
        default: blue(depth + 1);
        }
    }
}

NOCLONE static void red(int depth) {
    STEP("red");
    wander(depth);
    LEAVE();
}
NOCLONE static void green(int depth) {
    STEP("green");
    wander(depth);
    LEAVE();
}
NOCLONE static void blue(int depth) {
    STEP("blue");
    if (depth % 2) wander(depth);
    LEAVE();
}

NOCLONE static void jumper(int depth) {
    STEP("jumper");
    sigjmp_buf mark;
    World *const mine = world;
    int const marks = mine->mark_count, catches = mine->catch_count;
    if (may_jump && marks < 64) {
        mine->marks[marks] = &mark;
        if (sigsetjmp(mark, 1)) {
            I_AM_HERE();
            mine->catch_count = catches;
        }
        mine->mark_count = marks + 1;
    }
    wander(depth);
    mine->mark_count = marks;
    LEAVE();
}

NOCLONE static void catcher(int depth) {
    STEP("catcher");
    World *const mine = world;
    int const marks = mine->mark_count, catches = mine->catch_count;
    try {
        mine->catch_count = catches + 1;
        wander(depth);
    } catch (int) {
        I_AM_HERE();
        mine->mark_count = marks;
    }
    mine->catch_count = catches;
    wander(depth);
    LEAVE();
}

NOCLONE static void handler(int) {
    STEP("handler");
    // An exception must not leave a handler; a jump may.
    World *const mine = world;
    int const catches = mine->catch_count;
    mine->catch_count = 0;
    bool const throws = may_throw, switches = may_switch;
    may_throw = may_switch = false;
    wander(depth_below);
    may_throw = throws;
    may_switch = switches;
    mine->catch_count = catches;
    LEAVE();
}
NOCLONE static void raiser(int depth) {
    STEP("raiser");
    bool const throws = may_throw, switches = may_switch;
    sigjmp_buf mark;
    World *const mine = world;
    int const marks = mine->mark_count, catches = mine->catch_count;
    sigjmp_buf *before[64];
    memcpy(before, mine->marks, sizeof before);
    // Jumps out of the handler end here at the latest, so that all can be put right again.
    if (sigsetjmp(mark, 1)) {
        I_AM_HERE();
        may_throw = throws;
        may_switch = switches;
        mine->catch_count = catches;
    } else {
        depth_below = depth + 1;
        mine->marks[0] = &mark;
        mine->mark_count = 1;
        raise(SIGUSR1);
    }
    memcpy(mine->marks, before, sizeof before);
    mine->mark_count = marks;
    LEAVE();
}

NOCLONE static void entry() {
    path_here = NULL;
    STEP("entry");
    wander(10);
    LEAVE();
    // Whatever is left of its steps it gives back; the end is a switch like the others.
    world->ended = true;
    World *to = world->caller;
    world = to;
    setcontext(&to->context);
}
NOCLONE static void caller_of(int depth) {
    STEP("caller_of");
    World *const mine = world;
    World *below = (World *)calloc(1, sizeof *below);
    below->caller = mine;
    getcontext(&below->context);
    below->context.uc_stack.ss_size = 256 * 1024;
    below->context.uc_stack.ss_sp = malloc(below->context.uc_stack.ss_size);
    makecontext(&below->context, entry, 0);
    for (int turns = 0; turns < 5 && !below->ended; turns++) {
        world = below;
        swapcontext(&mine->context, &below->context);
        world = mine;
        I_AM_HERE();
        if (turns % 2) blue(depth + 1);
    }
    // Ended, or left behind: its memory is another's now.
    free(below->context.uc_stack.ss_sp);
    free(below);
    LEAVE();
}
}

int main(int argc, char **argv) {
    STEP("main");
    state = (unsigned long)counted_argument(argc, argv, 1, 1) * 2654435761u + 88172645463325252u;
    steps = counted_argument(argc, argv, 2, 20000);
    const char *allowed = argc > 3 ? argv[3] : "jxsc";
    may_jump = strchr(allowed, 'j');
    may_throw = strchr(allowed, 'x');
    may_signal = strchr(allowed, 's');
    may_switch = strchr(allowed, 'c');
    may_pause = strchr(allowed, 'p');
    struct sigaction action = {};
    action.sa_handler = handler;
    action.sa_flags = SA_NODEFER;
    sigaction(SIGUSR1, &action, NULL);
    while (steps > 0) wander(0);
    if (off) toggle();
    paths_print();
    LEAVE();
    return 0;
}
