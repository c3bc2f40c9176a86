#include "sums.h"
#include <stdio.h>

int main(void)
{
    printf("%.3f\n", sum_of_roots(1000));
    return 0;
}
