// Functions with clang's vectorcall convention, whose symbols end with @@ and a number.
#include <stdio.h>

__attribute__((vectorcall, noinline)) double weigh(double a, double b) { return a * b + 1; }

__attribute__((vectorcall, noinline)) static int turn(int a) { return a * 3 + 1; }

int main(void) {
    double sum = 0;
    double (__attribute__((vectorcall)) *volatile by_address)(double, double) = weigh;
    for (int i = 0; i < 100; i++)
        sum += weigh(i, 2) + turn(i) + by_address(i, 1);
    printf("%g\n", sum);
    return 0;
}
