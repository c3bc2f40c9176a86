/* A trusted application that looks at each of its parameters, and its client. There is one with hooks and one without, which
 * are the same otherwise. */
#ifndef STRICT_TA_H
#define STRICT_TA_H

#define STRICT_TA_UUID \
    { 0x4b1e7ab0, 0x6c2f, 0x4f11, { 0x9d, 0x5e, 0x0d, 0x8c, 0x2a, 0x7e, 0x3f, 0x01 } }
#define PLAIN_TA_UUID \
    { 0x4b1e7ab0, 0x6c2f, 0x4f11, { 0x9d, 0x5e, 0x0d, 0x8c, 0x2a, 0x7e, 0x3f, 0x02 } }

/* A session is opened without parameters; or with value 0 in and out, of which a is counted up, and memory 1 out, which takes
 * STRICT_GREETING bytes and is told so where it is shorter. With any others it is refused. */
#define STRICT_GREETING 48

/* Each command prints what it was given, a line that begins with `seen`. Of each parameter that goes out, it changes values
 * and the first byte of memory, and makes the size of memory one less. It gives its own number, where that is odd, else
 * TEE_SUCCESS. */

#endif
