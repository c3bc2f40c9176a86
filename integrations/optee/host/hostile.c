/* A hostile normal world: as `optee-hostile SECONDS`, writes random numbers all over the memory that a recorder
 * has lent to trusted applications, and prints how many. Half of them go where they do most harm: to the
 * heads of memory, of segments and of chunks. Exits with 1 when there is no such memory. */
#include <dirent.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define MOST 16
#define HEADS 16384
#define CHUNK 65536

static struct {
    volatile uint32_t *words;
    size_t bytes;
} arenas[MOST];
static int count;

static uint64_t random_number(void)
{
    static uint64_t number = 0x9e3779b97f4a7c15;
    number ^= number << 13;
    number ^= number >> 7;
    number ^= number << 17;
    return number;
}

static void take(const char *path)
{
    char target[256];
    ssize_t length = readlink(path, target, sizeof target - 1);
    if (length < 0 || count == MOST)
        return;
    target[length] = 0;
    if (strncmp(target, "/memfd:teeperf-arena", 20) != 0)
        return;
    int file = open(path, O_RDWR);
    struct stat stat;
    if (file < 0 || fstat(file, &stat) != 0)
        return;
    void *base = mmap(NULL, stat.st_size, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    close(file);
    if (base == MAP_FAILED)
        return;
    arenas[count].words = base;
    arenas[count].bytes = stat.st_size;
    count++;
}

static void forget(void)
{
    while (count > 0) {
        count--;
        munmap((void *)arenas[count].words, arenas[count].bytes);
    }
}

/* Looks through the open files of all processes. */
static void find(void)
{
    DIR *processes = opendir("/proc");
    for (struct dirent *process; processes && (process = readdir(processes));) {
        char folder[300];
        snprintf(folder, sizeof folder, "/proc/%s/fd", process->d_name);
        DIR *files = opendir(folder);
        for (struct dirent *file; files && (file = readdir(files));) {
            char path[600];
            snprintf(path, sizeof path, "%s/%s", folder, file->d_name);
            take(path);
        }
        if (files)
            closedir(files);
    }
    if (processes)
        closedir(processes);
}

static void write_one(void)
{
    uint64_t number = random_number();
    int arena = number % count;
    size_t bytes = arenas[arena].bytes;
    size_t offset = random_number() % bytes;
    if (number & 1 << 20)
        offset = number & 1 << 21 ? offset % HEADS : (2 * 4096 + offset / CHUNK * CHUNK + offset % 64) % bytes;
    uint32_t value = random_number();
    /* Small numbers are taken for something more often. */
    arenas[arena].words[offset / 4] = number & 1 << 22 ? value : value % 70;
}

int main(int words, char **word)
{
    time_t seconds = words > 1 ? strtoul(word[1], NULL, 0) : 1;
    unsigned long long writes = 0;
    /* A recorder that has just begun lends its memory a little later, and more of it to further threads. */
    for (int tries = 0; tries < 600 && count == 0; tries++) {
        usleep(50000);
        find();
    }
    if (count > 0) {
        usleep(500000);
        forget();
        find();
    }
    if (count == 0) {
        printf("hostile arenas=0\n");
        return 1;
    }
    for (time_t end = time(NULL) + seconds; time(NULL) < end; writes += 4096)
        for (int i = 0; i < 4096; i++)
            write_one();
    printf("hostile arenas=%d writes=%llu\n", count, writes);
    return 0;
}
