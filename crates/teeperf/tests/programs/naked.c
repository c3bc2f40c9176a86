// A naked function, which no hook may stand in.
#include <stdio.h>

__attribute__((naked)) long add_seven(long a) { __asm__("lea 7(%rdi), %rax; ret"); }

int main(void) {
    printf("%ld\n", add_seven(1));
    return 0;
}
