// What is lent memory lies there: `lies MEMORY anything|chunks MILLISECONDS`, for a file that `teeperf serve-memory` lends.
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "../../../../integrations/optee/ta/liar/lies.h"

static long now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * 1000 + time.tv_nsec / 1000000;
}

int main(int count, char **word) {
    int file = count > 3 ? open(word[1], O_RDWR) : -1;
    struct stat about;
    if (file < 0 || fstat(file, &about)) {
        perror("lies");
        return 1;
    }
    void *memory = mmap(NULL, about.st_size, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (memory == MAP_FAILED) {
        perror("lies");
        return 1;
    }
    for (long end = now() + atol(word[3]); now() < end;)
        lie_in(memory, about.st_size, word[2][0] == 'a', 1);
    return 0;
}
