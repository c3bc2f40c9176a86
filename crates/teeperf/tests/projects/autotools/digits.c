#include "config.h"
#ifdef HAVE_NO_SUCH_FUNCTION_ANYWHERE
#error "configure found what is not there"
#endif
#ifndef HAVE_STRTOL
#error "configure did not find what is there"
#endif
#if SIZEOF_LONG != __SIZEOF_LONG__
#error "configure measured wrongly"
#endif

int digit_sum(long number);

int digit_sum(long number)
{
    return number ? (int)(number % 10) + digit_sum(number / 10) : 0;
}
