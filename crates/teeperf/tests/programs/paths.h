// A slow model of the stacks: every call path with the number of its calls, kept by the
// program itself. What a profiler must find out, the program simply knows, because after
// every unusual way out it says where it is.
//
//   ENTER("name");   first thing in a function
//   LEAVE();         last thing before it returns
//   I_AM_HERE();     after a longjmp or in a catch: this function is on top again
//   path_here        the present path of this thread; a coroutine saves and restores it
//   paths_print();   writes "path a;b;c N" lines to standard output
//
// Nothing here is hooked. Not async-signal-safe; threads take turns at a lock.
#ifndef PATHS_H
#define PATHS_H

#include "counted.h"
#include <pthread.h>

struct path {
    const char *name;
    struct path *parent, *child, *sibling;
    long calls;
};

static struct path path_root;
static __thread struct path *path_here;
static pthread_mutex_t path_lock = PTHREAD_MUTEX_INITIALIZER;

UNHOOKED static inline struct path *path_enter(const char *name) {
    pthread_mutex_lock(&path_lock);
    struct path *parent = path_here ? path_here : &path_root;
    struct path *at = parent->child;
    while (at && strcmp(at->name, name)) at = at->sibling;
    if (!at) {
        at = (struct path *)calloc(1, sizeof *at);
        at->name = name;
        at->parent = parent;
        at->sibling = parent->child;
        parent->child = at;
    }
    at->calls++;
    path_here = at;
    pthread_mutex_unlock(&path_lock);
    return at;
}

// One path and those below it, indented nowhere: the whole path on every line.
static char path_text[16384];
UNHOOKED static inline void path_print_below(struct path *at, size_t used) {
    for (struct path *child = at->child; child; child = child->sibling) {
        size_t end = used + (size_t)snprintf(path_text + used, sizeof path_text - used, "%s%s", used ? ";" : "",
                                             child->name);
        if (end >= sizeof path_text) abort();
        printf("path %.*s %ld\n", (int)end, path_text, child->calls);
        path_print_below(child, end);
    }
}

UNHOOKED static inline void paths_print(void) {
    path_print_below(&path_root, 0);
    fflush(stdout);
}

#define ENTER(text) struct path *const self_ __attribute__((unused)) = path_enter(text)
#define LEAVE() (path_here = self_->parent == &path_root ? NULL : self_->parent)
#define I_AM_HERE() (path_here = self_)

#endif
