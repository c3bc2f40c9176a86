/* Functions that the demo spends its time in. */
#ifndef WORK_H
#define WORK_H

#include <stdint.h>

/* Calls middle() three times, and that leaf() five times. */
uint32_t outer(uint32_t number);
uint32_t middle(uint32_t number);
uint32_t leaf(uint32_t number);

/* Calls dive() so many times, and that fall(), which leaps out of both; leaf() each time it has landed. */
uint32_t leaps(uint32_t rounds);

/* A generator of numbers, so many rounds from 1. */
uint32_t compute(uint32_t rounds);

/* They do not return. */
uint32_t dive(uint32_t number);
uint32_t fall(uint32_t number);

#endif
