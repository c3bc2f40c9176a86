/* Their calls are counted from outside: no compiler may inline, copy or leave out one. */
#include "work.h"

#include <setjmp.h>

#define COUNTED __attribute__((noinline, noclone, noipa))

uint32_t COUNTED leaf(uint32_t number)
{
    return 3 * number + 1;
}

uint32_t COUNTED middle(uint32_t number)
{
    uint32_t sum = 0;
    for (uint32_t i = 0; i < 5; i++)
        sum += leaf(number + i);
    return sum;
}

uint32_t COUNTED outer(uint32_t number)
{
    uint32_t sum = 0;
    for (uint32_t i = 0; i < 3; i++)
        sum += middle(number + i);
    return sum;
}

uint32_t COUNTED compute(uint32_t rounds)
{
    volatile uint32_t number = 1;
    for (uint32_t i = 0; i < rounds; i++)
        number = number * 1664525 + 1013904223;
    return number;
}

static jmp_buf ground;

uint32_t COUNTED fall(uint32_t number)
{
    if (number < UINT32_MAX)
        longjmp(ground, 1);
    return number;
}

uint32_t COUNTED dive(uint32_t number)
{
    return fall(number) + 1;
}

uint32_t COUNTED leaps(uint32_t rounds)
{
    volatile uint32_t sum = 0;
    for (volatile uint32_t i = 0; i < rounds; i++) {
        if (setjmp(ground) == 0)
            dive(i);
        else
            sum += leaf(i);
    }
    return sum;
}
