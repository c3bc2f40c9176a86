/* What the application in Rust and its client have to agree on: it knows DEMO_CMD_CALLS, DEMO_CMD_COMPUTE and
 * DEMO_CMD_PANIC of demo_ta.h, and answers as the demo does. */
#ifndef RUST_TA_H
#define RUST_TA_H

#define RUST_TA_UUID \
    { 0x1e049072, 0xb8cb, 0x47f1, { 0x9b, 0x1a, 0xa9, 0x28, 0xa4, 0x46, 0xc5, 0xe9 } }

#endif
