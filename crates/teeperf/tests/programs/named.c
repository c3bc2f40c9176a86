// Two threads, which have names of their own from their hundredth call on: "red 1" and "blue 1". Behind that they wait a
// moment, and call again.
#define _GNU_SOURCE
#include "counted.h"
#include <pthread.h>

NOINLINE static void by_red(void) { CALLED("by_red"); }
NOINLINE static void by_blue(void) { CALLED("by_blue"); }

UNHOOKED static void *thread(void *argument) {
    const char *name = argument;
    for (int i = 0; i < 5000; i++) {
        if (i == 99) pthread_setname_np(pthread_self(), name);
        if (i == 100) usleep(300000);
        if (*name == 'r') by_red();
        else by_blue();
    }
    return NULL;
}

UNHOOKED int main(void) {
    pthread_t red, blue;
    pthread_create(&red, NULL, thread, "red 1");
    pthread_create(&blue, NULL, thread, "blue 1");
    pthread_join(red, NULL);
    pthread_join(blue, NULL);
    counted_print();
    return 0;
}
