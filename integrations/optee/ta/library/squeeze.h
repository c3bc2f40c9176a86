/* Work for zlib, the same in an application and in a program. */
#ifndef SQUEEZE_H
#define SQUEEZE_H

#include <stdint.h>

struct squeezed {
    uint32_t length;
    uint32_t crc;
};

/* Compresses a text of so many bytes, and decompresses it again; 0, or that it did not come out as it was. */
int squeeze(uint32_t size, struct squeezed *squeezed);

#endif
