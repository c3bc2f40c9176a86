#include <stdio.h>

int digit_sum(long number);

int main(void)
{
    printf("%d\n", digit_sum(123456789));
    return 0;
}
