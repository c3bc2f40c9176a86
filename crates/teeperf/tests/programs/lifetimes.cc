// Calls before main and after it: constructors by priority, static objects, atexit and
// on_exit handlers, destructors of thread-local objects of main and of other threads,
// pthread keys. What runs after the counts were printed is known: it prints its own.
#include "counted.h"
#include <pthread.h>
#include <thread>

extern "C" {
NOINLINE static long leaf(long n) {
    CALLED("leaf");
    return n + 1;
}
NOINLINE __attribute__((constructor(101))) static void first_constructor() {
    CALLED("first_constructor");
    leaf(1);
}
NOINLINE __attribute__((constructor)) static void constructor() {
    CALLED("constructor");
    leaf(2);
}
NOINLINE static void object_made() {
    CALLED("object_made");
    leaf(3);
}
NOINLINE static void object_gone() {
    CALLED("object_gone");
    leaf(4);
}
NOINLINE static void local_made() {
    CALLED("local_made");
    leaf(5);
}
NOINLINE static void local_gone() {
    CALLED("local_gone");
    leaf(6);
}
NOINLINE static void key_gone(void *) {
    CALLED("key_gone");
    leaf(7);
}
NOINLINE static void at_exit() {
    CALLED("at_exit");
    leaf(8);
}
// Runs last of all: by then everything else was called.
NOINLINE __attribute__((destructor(101))) static void last_destructor() {
    CALLED("last_destructor");
    leaf(9);
    counted_print();
}
NOINLINE __attribute__((destructor)) static void destructor() {
    CALLED("destructor");
    leaf(10);
}
}

struct Object {
    UNHOOKED Object() { object_made(); }
    UNHOOKED ~Object() { object_gone(); }
};
struct Local {
    long value;
    UNHOOKED Local() : value(1) { local_made(); }
    UNHOOKED ~Local() { local_gone(); }
};
static Object object;
static thread_local Local local;
static pthread_key_t key;

extern "C" {
NOINLINE static void in_a_thread() {
    CALLED("in_a_thread");
    leaf(local.value);
    pthread_setspecific(key, &key);
}
}

int main() {
    CALLED("main");
    atexit(at_exit);
    pthread_key_create(&key, key_gone);
    leaf(local.value);
    for (int i = 0; i < 20; i++) {
        std::thread thread(in_a_thread);
        thread.join();
    }
    return 6;
}
