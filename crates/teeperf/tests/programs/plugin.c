// A library to be loaded and unloaded again and again. NAME gives it its own functions, SIZE
// makes one of another size, so that two of them laid over each other's addresses differ.
#include "counted.h"

#define JOIN_(a, b) a##_##b
#define JOIN(a, b) JOIN_(a, b)
#define TEXT_(a) #a
#define TEXT(a) TEXT_(a)
#define OWN(name) JOIN(NAME, name)
#define OWN_TEXT(name) TEXT(JOIN(NAME, name))

#ifdef SIZE
// Moves what follows to other offsets than in the other plugin.
__attribute__((used)) UNHOOKED static void padding(void) { __asm__ volatile(".fill " TEXT(SIZE)); }
#endif

NOINLINE static long OWN(inner)(long n) {
    CALLED(OWN_TEXT(inner));
    return n + 1;
}
__attribute__((constructor)) NOINLINE static void OWN(loaded)(void) {
    CALLED(OWN_TEXT(loaded));
    OWN(inner)(1);
}
__attribute__((destructor)) NOINLINE static void OWN(unloaded)(void) {
    CALLED(OWN_TEXT(unloaded));
    OWN(inner)(2);
}
// The one name that the host looks up.
long plugin_run(long n);
NOINLINE long plugin_run(long n) {
    CALLED("plugin_run");
    return OWN(inner)(n) + OWN(inner)(n + 1);
}
