// Loads libraries in turn, calls into each, unloads each, so that their addresses are used
// over and over by other code. Arguments: rounds, then the libraries. With several, one
// stays loaded while the next comes. Every third round a thread makes the call.
#include "counted.h"
#include <dlfcn.h>
#include <pthread.h>

static long (*run)(long);

NOINLINE static void *in_a_thread(void *argument) {
    CALLED("in_a_thread");
    run(3);
    return argument;
}
NOINLINE static void one_round(const char *library, long round) {
    CALLED("one_round");
    void *handle = dlopen(library, RTLD_NOW | RTLD_LOCAL);
    if (!handle) {
        fprintf(stderr, "%s\n", dlerror());
        exit(3);
    }
    run = (long (*)(long))dlsym(handle, "plugin_run");
    if (!run) exit(4);
    if (round % 3 == 0) {
        pthread_t thread;
        pthread_create(&thread, NULL, in_a_thread, NULL);
        pthread_join(thread, NULL);
    } else {
        run(round);
    }
    if (dlclose(handle)) exit(5);
}

int main(int argc, char **argv) {
    CALLED("main");
    long rounds = counted_argument(argc, argv, 1, 10);
    for (long i = 0; i < rounds; i++) one_round(argv[2 + i % (argc - 2)], i);
    counted_print();
    return 0;
}
