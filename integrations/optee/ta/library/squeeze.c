#include "squeeze.h"

#include <stdlib.h>
#include <string.h>
#include <zlib.h>

/* Words in no order that repeats itself. */
static void write_text(unsigned char *text, uint32_t size)
{
    static const char words[16][8] = { "normal", "secure",  "world", "memory", "call", "return", "stack", "time",
                                       "tree",   "segment", "clock", "baton",  "site", "word",   "chunk", "gap" };
    uint32_t number = 1, at = 0;

    while (at < size) {
        number = number * 1664525 + 1013904223;
        const char *word = words[number >> 28];
        while (at < size && *word)
            text[at++] = *word++;
        if (at < size)
            text[at++] = number & 0x8000000 ? ' ' : '0' + (number >> 24 & 7);
    }
}

/* Without a C library zlib has to be told where memory comes from. */
static voidpf allocate(voidpf opaque, uInt items, uInt size)
{
    (void)opaque;
    return calloc(items, size);
}

static void release(voidpf opaque, voidpf memory)
{
    (void)opaque;
    free(memory);
}

/* The length of what comes of it, 0 if nothing does. */
static uint32_t compress_text(unsigned char *text, uint32_t size, unsigned char *packed, uint32_t room)
{
    z_stream stream = { .next_in = text, .avail_in = size, .next_out = packed, .avail_out = room,
                        .zalloc = allocate, .zfree = release };
    int is_whole = 0;

    if (deflateInit(&stream, Z_DEFAULT_COMPRESSION) != Z_OK)
        return 0;
    is_whole = deflate(&stream, Z_FINISH) == Z_STREAM_END;
    return deflateEnd(&stream) == Z_OK && is_whole ? stream.total_out : 0;
}

static uint32_t decompress(unsigned char *packed, uint32_t length, unsigned char *back, uint32_t room)
{
    z_stream stream = { .next_in = packed, .avail_in = length, .next_out = back, .avail_out = room,
                        .zalloc = allocate, .zfree = release };
    int is_whole = 0;

    if (inflateInit(&stream) != Z_OK)
        return 0;
    is_whole = inflate(&stream, Z_FINISH) == Z_STREAM_END;
    return inflateEnd(&stream) == Z_OK && is_whole ? stream.total_out : 0;
}

int squeeze(uint32_t size, struct squeezed *squeezed)
{
    unsigned char *text = malloc(size);
    unsigned char *packed = malloc(size);
    unsigned char *back = malloc(size);
    int differs = 1;

    if (text && packed && back) {
        write_text(text, size);
        squeezed->length = compress_text(text, size, packed, size);
        squeezed->crc = crc32(0, packed, squeezed->length);
        differs = decompress(packed, squeezed->length, back, size) != size || memcmp(text, back, size) != 0;
    }
    free(back);
    free(packed);
    free(text);
    return differs;
}
