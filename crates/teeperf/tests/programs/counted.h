// Counts what really happened, so that a test compares a recording with the program's own
// word and not with another profiler's. Nothing here is hooked.
//
//   CALLED("name");      first thing in a function: one more call of `name`
//   counted_print();     writes "calls NAME N" lines to standard output, once, at the end
//   counted_begin_anew() in a child of fork: what the parent counted is the parent's
//
// Async-signal-safe and thread-safe: the counters are atomic, printing is one write(2).
#ifndef COUNTED_H
#define COUNTED_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define UNHOOKED __attribute__((no_instrument_function))
#define NOINLINE __attribute__((noinline))
#ifdef __clang__
#define NOCLONE __attribute__((noinline))
#else
#define NOCLONE __attribute__((noinline, noclone))
#endif

struct counted {
    const char *name;
    long calls;
    // Keeps the size at which linkers lay neighbours of a section out without holes.
    long room[2];
};
extern struct counted __start_counted[] __attribute__((visibility("hidden")));
extern struct counted __stop_counted[] __attribute__((visibility("hidden")));

#define CALLED(text)                                                                  \
    do {                                                                              \
        static struct counted cell __attribute__((section("counted"), used)) = {text, 0, {0}}; \
        __atomic_fetch_add(&cell.calls, 1, __ATOMIC_RELAXED);                         \
    } while (0)

// All that a process has to say in one write, so that lines of several never mix.
UNHOOKED static inline void counted_print(void) {
    size_t cells = (size_t)(__stop_counted - __start_counted);
    size_t room = cells * 120 + 1, used = 0;
    char *text = (char *)malloc(room);
    for (size_t i = 0; i < cells; i++)
        if (__start_counted[i].calls)
            used += (size_t)snprintf(text + used, room - used, "calls %s %ld\n",
                                     __start_counted[i].name, __start_counted[i].calls);
    if (write(1, text, used) != (ssize_t)used) abort();
    free(text);
}

UNHOOKED static inline void counted_begin_anew(void) {
    for (struct counted *cell = __start_counted; cell < __stop_counted; cell++) cell->calls = 0;
}

// A number from a command line, or what stands for it.
UNHOOKED static inline long counted_argument(int argc, char **argv, int at, long otherwise) {
    return argc > at ? atol(argv[at]) : otherwise;
}

#endif
