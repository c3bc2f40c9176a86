// Functions chosen before the program has begun: ifunc resolvers run, hooked, when there
// is no thread-local storage yet (in a static program, while it relocates itself).
// What the resolvers call cannot be recorded; nothing may break, and all that comes after
// must be there.
#include "counted.h"

static int resolved;

NOINLINE static int chooses(void) { return ++resolved; }

NOINLINE static long fast(long n) {
    CALLED("fast");
    return n * 2;
}
NOINLINE static long slow(long n) {
    CALLED("slow");
    return n + n;
}
__attribute__((used)) static long (*resolve(void))(long) { return chooses() > 100 ? slow : fast; }
long doubled(long n) __attribute__((ifunc("resolve")));

int main(void) {
    CALLED("main");
    long sum = 0;
    for (long i = 0; i < 1000; i++) sum += doubled(i);
    if (resolved < 1 || sum != 999000) return 3;
    counted_print();
    return 0;
}
