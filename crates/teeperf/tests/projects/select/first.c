#include "small.h"
__attribute__((noinline)) static int helper(int x) { return elsewhere(x) + here(x); }
int first(int x) { return helper(x) + helper(x + 1); }
