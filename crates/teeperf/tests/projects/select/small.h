/* Inlined where it is called, and compiled elsewhere: gcc hooks it here, where it has no code. */
inline int elsewhere(int x) { return x * 2 + 1; }
static inline int here(int x) { return x - 1; }
