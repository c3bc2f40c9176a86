/* A library for graph.c: calls back into the program. */
#define KEPT __attribute__((noinline, noclone))

static volatile unsigned long spent;

KEPT static int inner(int n) { for (int i = 0; i < 2000000; i++) spent += i; return n; }
KEPT int packed(int n, int (*compare)(int)) { return inner(n) + inner(n + 1) + compare(n); }
