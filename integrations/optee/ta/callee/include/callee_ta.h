/* What the callee and whoever calls it have to agree on. */
#ifndef CALLEE_TA_H
#define CALLEE_TA_H

#define CALLEE_TA_UUID \
    { 0x15cc187a, 0x0d9c, 0x4ce6, { 0xb9, 0xc4, 0x53, 0x25, 0x75, 0xf5, 0x7d, 0xed } }

/* 0: value a, in and out, doubled. */
#define CALLEE_CMD_DOUBLE 0

#endif
