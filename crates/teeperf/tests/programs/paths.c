// Hands over a tree of many paths, each called once, in the memory that `teeperf serve-memory` lends: `paths MEMORY NODES`.
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

// Offsets of an arena's segment and in it (`teeperf_wire::shared`), and in a chunk (`teeperf_wire::arena::piece`).
enum { SEGMENT = 4096, STATES = 1024, DATA = 4096, SERIAL = 8, CLOCK = 40, FIRST = 32, COUNT = 36, HEAD = 64, NODE = 64 };
enum { FREE, TAKEN, FULL, OF_TREE };

int main(int count, char **word) {
    int file = count > 2 ? open(word[1], O_RDWR) : -1;
    struct stat about;
    if (file < 0 || fstat(file, &about)) {
        perror("paths");
        return 1;
    }
    char *segment = mmap(NULL, about.st_size, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (segment == MAP_FAILED) {
        perror("paths");
        return 1;
    }
    segment += SEGMENT;
    uint32_t size = *(uint32_t *)(segment + 8), chunks = *(uint32_t *)(segment + 12);
    uint32_t *states = (uint32_t *)(segment + STATES);
    uint32_t nodes = atol(word[2]), room = size / NODE - 1, first = 0;
    for (uint32_t turn = 0; first < nodes; turn = (turn + 1) % chunks) {
        char *chunk = segment + DATA + (size_t)turn * size;
        uint32_t many = nodes - first < room ? nodes - first : room;
        while (__atomic_load_n(&states[turn], __ATOMIC_ACQUIRE) != FREE)
            usleep(100);
        memset(chunk, 0, HEAD);
        *(uint32_t *)(chunk + SERIAL) = 1;
        *(uint32_t *)(chunk + FIRST) = first;
        *(uint32_t *)(chunk + COUNT) = many;
        *(uint32_t *)(chunk + CLOCK) = OF_TREE;
        // Two functions that call each other and themselves: word, caller, calls. The first two nodes are none of theirs.
        for (uint32_t at = 0; at < many; at++, first++) {
            uint64_t node[NODE / 8] = { 0 };
            if (first > 1) {
                uint64_t caller = first < 4 ? 0 : first / 2;
                node[0] = caller << 32 | (0x2000 + first % 2 * 2);
                node[1] = 1;
            }
            memcpy(chunk + HEAD + at * NODE, node, NODE);
        }
        __atomic_store_n(&states[turn], FULL, __ATOMIC_RELEASE);
    }
    return 0;
}
