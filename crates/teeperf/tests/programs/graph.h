/* For graph.c and graph_other.c: functions that stay functions, whatever the optimiser would do. */
#define KEPT __attribute__((noinline, noclone))

extern volatile unsigned long sink;
int other(int n);
int packed(int n, int (*compare)(int));
