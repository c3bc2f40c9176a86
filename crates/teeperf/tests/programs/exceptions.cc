// C++ exceptions: through many frames, caught and thrown again, caught by type, out of a
// catch, past destructors that make calls of their own, from functions that are inlined,
// in several threads, and never caught within a thread's function.
#include "paths.h"
#include <exception>
#include <stdexcept>
#include <string>
#include <thread>

extern "C" {

NOINLINE static void leaf() {
    ENTER("leaf");
    LEAVE();
}

NOINLINE static void thrower(int kind) {
    ENTER("thrower");
    leaf();
    if (kind == 0) throw std::runtime_error("runtime");
    if (kind == 1) throw 42;
    if (kind == 2) throw std::string("a string");
    LEAVE();
}

NOINLINE static void descend(int frames, int kind) {
    ENTER("descend");
    leaf();
    if (frames == 0) thrower(kind);
    else descend(frames - 1, kind);
    leaf();
    LEAVE();
}

// One catch, many frames below it.
NOINLINE static void catches(int frames, int kind) {
    ENTER("catches");
    try {
        descend(frames, kind);
    } catch (const std::runtime_error &) {
        I_AM_HERE();
        leaf();
    } catch (int) {
        I_AM_HERE();
        leaf();
    } catch (...) {
        I_AM_HERE();
        leaf();
    }
    leaf();
    LEAVE();
}

// Caught, thrown again, caught further out.
NOINLINE static void rethrows(int frames) {
    ENTER("rethrows");
    try {
        descend(frames, 0);
    } catch (const std::exception &) {
        I_AM_HERE();
        leaf();
        throw;
    }
    LEAVE();
}
NOINLINE static void outermost(int frames) {
    ENTER("outermost");
    try {
        rethrows(frames);
    } catch (const std::exception &) {
        I_AM_HERE();
        // A second exception while the first is being handled.
        catches(2, 1);
        leaf();
    }
    leaf();
    LEAVE();
}

// Caught in a loop at one depth: what is not mended piles up here.
NOINLINE static void loops(int times) {
    ENTER("loops");
    for (int i = 0; i < times; i++) {
        try {
            descend(i % 4, i % 3);
        } catch (...) {
            I_AM_HERE();
            leaf();
        }
    }
    LEAVE();
}

static inline __attribute__((always_inline)) void inlined_thrower(int kind) {
#ifndef INLINED_IS_NO_CALL
    ENTER("inlined_thrower");
#endif
    leaf();
    if (kind != 3) throw kind;
#ifndef INLINED_IS_NO_CALL
    LEAVE();
#endif
}
NOINLINE static void inlined_frames(int kind) {
    ENTER("inlined_frames");
    try {
        inlined_thrower(kind);
    } catch (int) {
        I_AM_HERE();
        leaf();
    }
    leaf();
    LEAVE();
}

// An exception travels as an exception_ptr and is thrown somewhere else.
NOINLINE static void travels() {
    ENTER("travels");
    std::exception_ptr carried;
    try {
        thrower(1);
    } catch (...) {
        I_AM_HERE();
        carried = std::current_exception();
    }
    try {
        leaf();
        std::rethrow_exception(carried);
    } catch (int) {
        I_AM_HERE();
        leaf();
    }
    LEAVE();
}

NOINLINE static void in_a_thread(int rounds) {
    ENTER("in_a_thread");
    for (int i = 0; i < rounds; i++) catches(i % 20, i % 4);
    LEAVE();
}
}

int main(int argc, char **argv) {
    ENTER("main");
    int rounds = (int)counted_argument(argc, argv, 1, 50);
    for (int i = 0; i < rounds; i++) {
        catches(i % 30, i % 4);
        outermost(i % 5);
        loops(10);
        inlined_frames(i % 4);
        travels();
    }
    std::thread first(in_a_thread, rounds), second(in_a_thread, rounds);
    first.join();
    second.join();
    paths_print();
    LEAVE();
    return 0;
}
