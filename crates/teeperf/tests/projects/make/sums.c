#include "sums.h"
#include <math.h>

static __attribute__((noinline)) double root_of(int number)
{
    return sqrt(number);
}

double sum_of_roots(int count)
{
    double sum = 0;
    for (int i = 1; i <= count; i++)
        sum += root_of(i);
    return sum;
}
