/* What the application with a library in it and its client have to agree on. */
#ifndef LIBRARY_TA_H
#define LIBRARY_TA_H

#define LIBRARY_TA_UUID \
    { 0x6093aedd, 0x5083, 0x4868, { 0xbe, 0xe3, 0xac, 0xcd, 0x3e, 0x6c, 0x31, 0x47 } }

/* 0: value a, in and out; b, out. Makes a text of a bytes, has zlib compress and decompress it, and looks
 * whether it is the same again; a is the length of what was compressed, b its CRC. */
#define LIBRARY_CMD_SQUEEZE 0

#endif
