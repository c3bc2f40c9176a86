/* What the demo and its client have to agree on. */
#ifndef DEMO_TA_H
#define DEMO_TA_H

#define DEMO_TA_UUID \
    { 0x80391883, 0x0ed0, 0x447a, { 0xa4, 0xd2, 0x13, 0x76, 0x9a, 0x2c, 0x6c, 0x84 } }

/* 0: value a, in and out. Calls outer() a times, middle() three times as often, leaf() fifteen times; a is
 * the sum of what leaf() has given. */
#define DEMO_CMD_CALLS 0
/* 0: value a, in and out. Computes for a rounds in one function; a is what comes of it. */
#define DEMO_CMD_COMPUTE 1
/* 0: value in and out, whose parts change places. 1: memory in. 2: memory out, the same in reverse order.
 * 3: value out, a is the sum of its bytes, b their number. */
#define DEMO_CMD_PARAMS 2
/* 0: value a, in and out. Opens a session with the other application, which doubles 1 a times. */
#define DEMO_CMD_NESTED 3
/* 0: value a. Panics with this code. */
#define DEMO_CMD_PANIC 4
/* No parameters. Looks at the cancellation flag until it is set, for ten seconds at most. */
#define DEMO_CMD_UNTIL_CANCELLED 5
/* 0: value a, in and out. Leaps out of two functions a times (longjmp), and calls leaf() each time; a is the sum of
 * what that has given. */
#define DEMO_CMD_LEAPS 6
/* 0: memory out: the next piece of what the application has summed, of size 0 when nothing is left. Not there without
 * hooks. */
#define DEMO_CMD_TAKE 7
/* 0: value a. Writes where there is no memory, which ends it. */
#define DEMO_CMD_CRASH 8

#endif
