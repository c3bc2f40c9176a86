/* Lies in lent memory: what the other side that lent it reads there is anything, at any time. */
#ifndef LIES_H
#define LIES_H

#include <stdint.h>
#include <string.h>

enum { STATES = 4096 + 1024, CHUNKS = 2 * 4096, CHUNK = 65536, LARGE = 1 << 20, SMALL_CHUNK = 4096, HEADER = 64 };
enum { OF_TREE = 3, OF_ARCS = 4, FULL = 2, NODE = 64, ITEM = 32 };

static uint64_t lie_state = 88172645463325252u;

static uint64_t lie(void)
{
    lie_state ^= lie_state << 13;
    lie_state ^= lie_state >> 7;
    lie_state ^= lie_state << 17;
    return lie_state;
}

/* Small as often as large, and near every power of two. */
static uint64_t strange(void)
{
    uint64_t number = lie();

    switch (number >> 61) {
    case 0:
        return number % 4;
    case 1:
        return number % 900;
    case 2:
        return (1ull << (number >> 8 & 63)) - number % 3;
    case 3:
        return (1ull << (number >> 8 & 31)) + number % 3;
    case 4:
        return -(number % 5);
    default:
        return lie() >> (number & 63);
    }
}

static void put(volatile unsigned char *at, uint64_t value)
{
    *(volatile uint64_t *)at = value;
}

static void put_half(volatile unsigned char *at, uint32_t value)
{
    *(volatile uint32_t *)at = value;
}

/* Numbers all over it, half of them where they steer. */
static void lie_anywhere(volatile unsigned char *memory, size_t length, size_t chunk)
{
    size_t at = lie() % length;

    switch (lie() % 4) {
    case 0:
        at %= CHUNKS;
        break;
    case 1:
        at = (CHUNKS + at / chunk * chunk + at % HEADER) % length;
        break;
    }
    put_half(memory + (at & ~(size_t)3), strange());
}

/* A path or a name in payload words, three bytes in each. */
static size_t lie_text(uint32_t *words, const char *text)
{
    size_t length = strlen(text), count = 0, i;

    for (i = 0; i < length; i += 3) {
        uint32_t word = 0x80000000;
        size_t byte;

        for (byte = 0; byte < 3 && i + byte < length; byte++)
            word |= (uint32_t)(unsigned char)text[i + byte] << 8 * byte;
        words[count++] = word;
    }
    return count;
}

/* Events and escapes, of which payload is what a reader wants to know: windows, files, names, losses, times, stacks. */
static size_t lie_in_words(uint32_t *words, size_t room)
{
    static const char *const files[] = {
        "/dev/zero", "/proc/self/mem", "/proc/self/exe", "/", "/tmp", "no such file", "/proc/1/root/etc/shadow", "",
        "/dev/stdin", "80391883-0ed0-447a-a4d2-13769a2c6c84.elf", "../../../../../../../../dev/random", "/proc/self/maps",
    };
    size_t at = 0, i;

    while (at + 140 < room) {
        uint32_t code = 16 + lie() % 10, *count = &words[at + 1];

        if (lie() % 4) {
            /* Few functions, called ever deeper, or any. */
            words[at++] = lie() % 8 ? 0x2000 + lie() % 64 * 2 + lie() % 3 / 2 : 2 + lie() % 0xDFFFFFFD;
            continue;
        }
        if (lie() % 3 == 0) {
            words[at++] = 0xE0000000 | (lie() % 8) << 24 | (strange() & 0xFFFFFF);
            continue;
        }
        words[at] = 0xE0000000 | code << 24 | (lie() % 16 ? lie() % 9 : strange() & 0xFFFFFF);
        at += 2;
        if (code == 22) {
            words[at++] = 0x80000000 | lie() % 4;
            words[at++] = 0x80000000 | (lie() % 2 ? 0x1000 + lie() % 8 * 0x1000000 : strange());
            words[at++] = 0x80000000 | strange();
            for (i = 0; i < 6; i++)
                words[at++] = 0x80000000 | strange();
            words[at++] = 0x80000000 | (lie() % 4 ? 0 : strange() % 80);
            at += lie_text(words + at, files[lie() % (sizeof files / sizeof *files)]);
        } else {
            for (i = lie() % 9; i > 0; i--)
                words[at++] = 0x80000000 | strange();
        }
        *count = lie() % 32 ? 0x80000000 | (uint32_t)(words + at - count - 1) : 0x80000000 | (uint32_t)strange();
    }
    return at;
}

/* A chunk that was handed over: of a thread, in some order, of events, of a tree or of calls. */
static void lie_in_chunk(volatile unsigned char *chunk, size_t size, volatile unsigned char *state)
{
    static uint32_t words[CHUNK / 4], sequences[8];
    uint32_t what = 1 + lie() % 4, thread = lie() % 8, count = 0;
    size_t i;

    put_half(chunk + 40, 0);
    put(chunk, strange());
    put_half(chunk + 8, lie() % 4 ? 1 + thread : strange());
    put_half(chunk + 12, lie() % 16 ? ++sequences[thread] : strange());
    for (i = 16; i < HEADER; i += 8)
        if (i != 40)
            put(chunk + i, strange());
    if (what == OF_TREE) {
        count = lie() % 8 ? (size - HEADER) / NODE : strange();
        put(chunk + 24, lie() % 8);
        put(chunk + 32, (uint64_t)count << 32 | (lie() % 4 ? lie() % 65536 : strange() & 0xFFFFFFFF));
        for (i = HEADER; i + NODE <= size; i += NODE) {
            size_t field;

            put(chunk + i, strange() << 32 | (lie() % 2 ? 0x2000 + lie() % 9999 * 2 : strange() & 0xFFFFFFFF));
            for (field = 8; field < NODE; field += 8)
                put(chunk + i + field, strange());
        }
    } else if (what == OF_ARCS) {
        count = lie() % 8 ? (size - HEADER) / ITEM : strange();
        put(chunk + 32, (uint64_t)count << 32 | (lie() % 8 ? lie() % (count + 1ull) : strange() & 0xFFFFFFFF));
        for (i = HEADER; i + ITEM <= size; i += 8)
            put(chunk + i, lie() % 2 ? 0x2000 + lie() % 9999 * 2 : strange());
    } else {
        count = lie_in_words(words, (size - HEADER) / 4);
        for (i = 0; i < count; i++)
            put_half(chunk + HEADER + 4 * i, words[i]);
    }
    put_half(chunk + 40, lie() % 16 ? what : strange());
    put_half(state, lie() % 8 ? FULL : strange() % 4);
}

/* So many times: thousands of numbers anywhere, or a chunk that looks as it should. */
static void lie_in(void *memory, size_t length, int is_anything, unsigned times)
{
    size_t chunk = length < LARGE ? SMALL_CHUNK : CHUNK, chunks = (length - CHUNKS) / chunk, i;
    volatile unsigned char *base = memory;
    static size_t next;

    while (times-- > 0) {
        size_t index = next++ % chunks;

        if (is_anything)
            for (i = 0; i < 4096; i++)
                lie_anywhere(base, length, chunk);
        else if (*(volatile uint32_t *)(base + STATES + 4 * index) != FULL)
            lie_in_chunk(base + CHUNKS + index * chunk, chunk, base + STATES + 4 * index);
    }
}

#endif
