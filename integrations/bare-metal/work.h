/* Compiled with hooks. */
#ifndef WORK_H
#define WORK_H

/* Calls `count` times `round`, each of which calls `middle` three times, and that `leaf` five times. */
void rounds(int count);

/* Calls, ten times, `long_wait` for 30 ms and `short_wait` for 10 ms. */
void waits(void);

/* Called by an interrupt. */
void beat(void);

#endif
