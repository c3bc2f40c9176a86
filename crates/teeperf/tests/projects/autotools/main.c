#include <stdio.h>

int digit_sum(long number);

int main(void)
{
    int sum = 0;
    for (int number = 0; number < 10; number++)
        sum += digit_sum(number);
    printf("%d\n", sum);
    return 0;
}
