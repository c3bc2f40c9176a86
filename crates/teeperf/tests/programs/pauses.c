// Switches recording off and on at random, at any depth, from inside, and keeps the slow
// model of what must have been seen: a call made while it is on. A frame entered while it is
// off and still there afterwards lies on the path as "[...]", with no call counted.
// Arguments: seed, toggles in thousand steps, steps. With no recorder nothing changes.
#include "paths.h"

#if __has_include(<teeperf.h>)
#include <teeperf.h>
#else
UNHOOKED static void teeperf_pause(void) {}
UNHOOKED static void teeperf_resume(void) {}
#endif

static unsigned long state;
static long steps, toggles;
static int off;

UNHOOKED static unsigned long next_random(void) {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state;
}

UNHOOKED static void perhaps_toggle(void) {
    if ((long)(next_random() % 1000) >= toggles) return;
    off = !off;
    if (off) teeperf_pause();
    else teeperf_resume();
}

// As path_enter, but what is off goes under the name of what nobody knows.
UNHOOKED static struct path *perhaps_enter(const char *name) {
    struct path *at = path_enter(off ? "[...]" : name);
    if (off) at->calls--;
    return at;
}
#define STEP(name) struct path *const self_ = perhaps_enter(name)

static void (*const all[4])(int);

UNHOOKED static void wander(int depth) {
    perhaps_toggle();
    while (steps > 0 && depth < 40 && next_random() % 100 < 52) {
        steps--;
        all[next_random() % 4](depth + 1);
        perhaps_toggle();
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
    wander(depth);
    LEAVE();
}
NOCLONE static void black(int depth) {
    STEP("black");
    if (depth % 3) wander(depth);
    LEAVE();
}
static void (*const all[4])(int) = {red, green, blue, black};

int main(int argc, char **argv) {
    STEP("main");
    state = (unsigned long)counted_argument(argc, argv, 1, 1) * 2654435761u + 88172645463325252u;
    toggles = counted_argument(argc, argv, 2, 100);
    steps = counted_argument(argc, argv, 3, 20000);
    while (steps > 0) wander(0);
    if (off) teeperf_resume();
    off = 0;
    paths_print();
    LEAVE();
    return 0;
}
