// Exceptions on their way: destructors that make calls while one passes by, in the frame of a
// function that is being left, after those it had called are gone; catches in functions without hooks,
// and in the midst of a recursion.
#include "paths.h"

extern "C" {
NOINLINE static void released() {
    ENTER("released");
    LEAVE();
}
NOINLINE static void leaf() {
    ENTER("leaf");
    LEAVE();
}
}

struct Holder {
    struct path *owner;
    UNHOOKED Holder(struct path *owner) : owner(owner) {}
    UNHOOKED ~Holder() {
        path_here = owner;
        released();
    }
};

extern "C" {
NOINLINE static void thrower() {
    ENTER("thrower");
    leaf();
    throw 1;
    LEAVE();
}
NOINLINE static void middle(int frames) {
    ENTER("middle");
    Holder holder(self_);
    leaf();
    if (frames) middle(frames - 1);
    else thrower();
    LEAVE();
}
NOINLINE static void plain(int frames) {
    ENTER("plain");
    middle(frames);
    LEAVE();
}
NOINLINE static void catches(int frames) {
    ENTER("catches");
    try {
        plain(frames);
    } catch (int) {
        I_AM_HERE();
        leaf();
    }
    LEAVE();
}
// The one that catches has no hooks: what follows hangs below its caller.
NOINLINE UNHOOKED static void swallows(int frames) {
    struct path *here = path_here;
    try {
        plain(frames);
    } catch (int) {
        path_here = here;
        leaf();
    }
}
NOINLINE static void lets_swallow(int frames) {
    ENTER("lets_swallow");
    swallows(frames);
    leaf();
    LEAVE();
}
// Frames of one function are left, others of it are not.
NOINLINE static void again(int frames, int catches_at) {
    ENTER("again");
    if (frames == 0) thrower();
    if (frames != catches_at) {
        again(frames - 1, catches_at);
    } else {
        try {
            Holder holder(self_);
            again(frames - 1, catches_at);
        } catch (int) {
            I_AM_HERE();
            leaf();
        }
    }
    leaf();
    LEAVE();
}
}

int main(int argc, char **argv) {
    ENTER("main");
    int rounds = (int)counted_argument(argc, argv, 1, 50);
    for (int i = 0; i < rounds; i++) {
        catches(i % 4);
        lets_swallow(i % 3);
        again(5, 1 + i % 5);
    }
    paths_print();
    LEAVE();
    return 0;
}
