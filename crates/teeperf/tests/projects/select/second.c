#include "small.h"
extern int elsewhere(int);
__attribute__((noinline)) static int helper(int x) { return x * 7; }
int second(int x) { return helper(x) + here(x); }
