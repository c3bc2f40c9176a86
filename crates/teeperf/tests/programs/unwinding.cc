// Destructors that make calls while an exception passes by. They run in the frame of a
// function that is being left, after those it had called are gone.
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
}

int main(int argc, char **argv) {
    ENTER("main");
    int rounds = (int)counted_argument(argc, argv, 1, 50);
    for (int i = 0; i < rounds; i++) catches(i % 4);
    paths_print();
    LEAVE();
    return 0;
}
