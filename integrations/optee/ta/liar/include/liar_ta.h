/* What the liar and whoever calls it have to agree on: all commands are the same. */
#ifndef LIAR_TA_H
#define LIAR_TA_H

#define LIAR_TA_UUID \
    { 0xc2e6d1f4, 0x6b0a, 0x4f6e, { 0x8f, 0x53, 0x6f, 0x1d, 0x2a, 0x90, 0xb7, 0xc3 } }

#endif
