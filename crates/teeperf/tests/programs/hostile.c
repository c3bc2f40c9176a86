// A peer that means harm. It has no runtime and no hooks: it shakes hands by itself, as
// the shared memory's description says, and then misbehaves. First argument:
//   truncate   shrinks, grows, punches, seals and maps what it was handed
//   random N   N rounds of random words at random places: headers, states, counters, chunks
//   greetings  greetings that are short, long, wrong or late; hundreds at once; strange tokens
//   silent     shakes hands, marks every chunk as full and leaves
// Prints "hostile: ..." and ends with 0 when it has done all that it wanted, 1 when it could
// do what it must not be able to.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

enum { PAGE = 4096, STATES = 1024, CHUNK_HEADER = 64, HELLO_VERSION = 4 };

struct welcome {
    uint32_t magic, version, refusal, clock, on_full, chunk_size;
    uint64_t token, hz;
    uint32_t chunks, rest;
};
struct memory {
    struct welcome welcome;
    int clock, segment, heirs;
    unsigned char *at, *heirs_at;
    size_t size, heirs_size;
};

static uint64_t state = 88172645463325252u;
static uint64_t next_random(void) {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state;
}

static int connected(void) {
    const char *name = getenv("TEEPERF_SOCKET");
    if (!name) {
        fprintf(stderr, "hostile: nobody to harm\n");
        exit(3);
    }
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    memcpy(address.sun_path + 1, name, strlen(name));
    int socket_ = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    socklen_t length = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + strlen(name));
    // Somebody who does not answer any more is somebody who was harmed.
    struct timeval patience = {10, 0};
    setsockopt(socket_, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    setsockopt(socket_, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
    if (connect(socket_, (struct sockaddr *)&address, length)) {
        close(socket_);
        return -1;
    }
    return socket_;
}

static void greeting(unsigned char *bytes, uint32_t version, uint32_t segment, uint64_t token, uint32_t pid) {
    memcpy(bytes, "TPHi", 4);
    memcpy(bytes + 4, &version, 4);
    memcpy(bytes + 8, &segment, 4);
    memcpy(bytes + 12, &pid, 4);
    memcpy(bytes + 16, &token, 8);
    memset(bytes + 24, 0, 8);
}

// What came back: bytes of the answer, with the descriptors that came with it.
static ssize_t answer(int socket_, struct welcome *welcome, int *files, int *count) {
    union {
        char room[CMSG_SPACE(sizeof(int) * 8)];
        struct cmsghdr align;
    } control;
    struct iovec part = {welcome, sizeof *welcome};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = control.room, .msg_controllen = sizeof control.room};
    ssize_t got = recvmsg(socket_, &message, MSG_CMSG_CLOEXEC);
    *count = 0;
    for (struct cmsghdr *head = got < 0 ? NULL : CMSG_FIRSTHDR(&message); head; head = CMSG_NXTHDR(&message, head))
        if (head->cmsg_type == SCM_RIGHTS) {
            int n = (int)((head->cmsg_len - CMSG_LEN(0)) / sizeof(int));
            for (int i = 0; i < n; i++) memcpy(&files[(*count)++], CMSG_DATA(head) + i * (int)sizeof(int), sizeof(int));
        }
    return got;
}

static int attach(struct memory *memory) {
    unsigned char hello[32];
    int files[8], count, socket_ = connected();
    if (socket_ < 0) return -1;
    greeting(hello, HELLO_VERSION, 0, 0, (uint32_t)getpid());
    if (send(socket_, hello, sizeof hello, MSG_NOSIGNAL) != sizeof hello) return -1;
    ssize_t got = answer(socket_, &memory->welcome, files, &count);
    close(socket_);
    if (got < (ssize_t)sizeof memory->welcome || memory->welcome.refusal || count != 3) return -1;
    struct stat about;
    memory->clock = files[0];
    memory->segment = files[1];
    memory->heirs = files[2];
    fstat(memory->heirs, &about);
    memory->heirs_size = (size_t)about.st_size;
    memory->heirs_at =
        mmap(NULL, memory->heirs_size, PROT_READ | PROT_WRITE, MAP_SHARED, memory->heirs, 0);
    if (memory->heirs_at == MAP_FAILED) return -1;
    fstat(memory->segment, &about);
    memory->size = (size_t)about.st_size;
    memory->at = mmap(NULL, memory->size, PROT_READ | PROT_WRITE, MAP_SHARED, memory->segment, 0);
    return memory->at == MAP_FAILED ? -1 : 0;
}

static int harm;
static void must_fail(const char *what, int result) {
    if (result != -1) {
        printf("hostile: could %s\n", what);
        harm = 1;
    }
}

static void truncates(void) {
    struct memory memory;
    if (attach(&memory)) exit(4);
    must_fail("shrink the segment", ftruncate(memory.segment, 0));
    must_fail("shrink the segment by a page", ftruncate(memory.segment, (off_t)memory.size - PAGE));
    must_fail("grow the segment", ftruncate(memory.segment, (off_t)memory.size * 2));
    must_fail("shrink the memory of children", ftruncate(memory.heirs, 0));
    must_fail("grow the memory of children", ftruncate(memory.heirs, (off_t)memory.heirs_size * 2));
    must_fail("shrink the clock", ftruncate(memory.clock, 0));
    must_fail("grow the clock", ftruncate(memory.clock, 1 << 20));
    must_fail("write to the clock", (int)pwrite(memory.clock, "x", 1, 0));
    must_fail("punch a hole into the clock",
              fallocate(memory.clock, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, PAGE));
    must_fail("map the clock for writing",
              mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, memory.clock, 0) == MAP_FAILED ? -1 : 0);
    void *clock = mmap(NULL, PAGE, PROT_READ, MAP_SHARED, memory.clock, 0);
    must_fail("make the clock's mapping writable", mprotect(clock, PAGE, PROT_READ | PROT_WRITE));
    char path[64];
    snprintf(path, sizeof path, "/proc/self/fd/%d", memory.segment);
    int again = open(path, O_RDWR | O_TRUNC);
    if (again >= 0) {
        must_fail("truncate a second descriptor", ftruncate(again, 0));
        close(again);
    }
    struct stat about;
    fstat(memory.segment, &about);
    if ((size_t)about.st_size != memory.size) {
        printf("hostile: the segment has another size\n");
        harm = 1;
    }
    // Allowed, as good as writing zeros: holes, and any seal that does not lock the other out.
    fallocate(memory.segment, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, (off_t)memory.size);
    fcntl(memory.segment, F_ADD_SEALS, F_SEAL_WRITE);
    memory.at[STATES] = 2;
    madvise(memory.at, memory.size, MADV_REMOVE);
    memset(memory.at, 0xff, memory.size);
    madvise(memory.heirs_at, memory.heirs_size, MADV_REMOVE);
    memset(memory.heirs_at, 0xff, memory.heirs_size);
}

static void writes_random(long rounds) {
    struct memory memory;
    if (attach(&memory)) exit(4);
    uint32_t *words = (uint32_t *)memory.at;
    size_t count = memory.size / 4, chunk_words = memory.welcome.chunk_size / 4;
    uint32_t *heirs = (uint32_t *)memory.heirs_at;
    for (long i = 0; i < rounds; i++) {
        uint32_t word = (uint32_t)next_random();
        // What children would have claimed stands in the first page.
        if (i % 4 == 0) heirs[next_random() % (PAGE / 4)] = word % (i % 3 ? 8 : UINT32_MAX);
        if (i % 64 == 0) heirs[next_random() % (memory.heirs_size / 4)] = word;
        switch (next_random() % 8) {
        case 0: words[next_random() % count] = word; break;
        case 1: words[next_random() % (PAGE / 4)] = word; break;
        // States: all that there are, and others.
        case 2: words[STATES / 4 + next_random() % memory.welcome.chunks] = word % 4; break;
        case 3: __atomic_store_n(&words[STATES / 4 + next_random() % memory.welcome.chunks], 2, __ATOMIC_RELEASE); break;
        // Chunks' headers, then escapes and payloads where events are.
        case 4: words[PAGE / 4 + next_random() % memory.welcome.chunks * chunk_words + next_random() % 16] = word % 5; break;
        case 5: words[PAGE / 4 + next_random() % (count - PAGE / 4)] = 0xE0000000u | word; break;
        default: {
            size_t at = PAGE / 4 + next_random() % memory.welcome.chunks * chunk_words;
            words[at + 10] = 1 + word % 2;
            for (size_t w = 16; w < 32; w++) words[at + w] = (uint32_t)next_random() | (w & 1) << 31;
        }
        }
        // Somebody must look at it in between.
        if (i % 10000 == 0) usleep(300);
    }
}

static void greets(void) {
    unsigned char bytes[4096];
    int sockets[64], files[8], count;
    struct welcome welcome;
    for (size_t i = 0; i < sizeof bytes; i++) bytes[i] = (unsigned char)next_random();
    // Connections that say nothing, kept until the end.
    for (int i = 0; i < 64; i++) sockets[i] = connected();
    for (int i = 0; i < 300; i++) {
        int socket_ = connected();
        if (socket_ < 0) continue;
        size_t length = i % 5 == 0 ? next_random() % sizeof bytes : i % 5 == 1 ? next_random() % 33 : 32;
        if (i % 5 > 1) greeting(bytes, i % 5 == 2 ? (uint32_t)next_random() : HELLO_VERSION, i % 5 == 3 ? (uint32_t)next_random() : 1, next_random(), (uint32_t)next_random());
        send(socket_, bytes, length, MSG_NOSIGNAL);
        // A refusal, or the end, but no memory.
        if (i % 3) {
            struct pollfd wait = {socket_, POLLIN, 0};
            poll(&wait, 1, 20);
            fcntl(socket_, F_SETFL, O_NONBLOCK);
            answer(socket_, &welcome, files, &count);
            if (count) {
                printf("hostile: a strange greeting got memory\n");
                harm = 1;
            }
        }
        close(socket_);
    }
    // As many processes as the day is long.
    struct memory memory;
    int attached = 0;
    for (int i = 0; i < 400; i++)
        if (attach(&memory) == 0) {
            attached++;
            munmap(memory.at, memory.size);
            close(memory.clock);
            close(memory.segment);
        }
    printf("hostile: attached %d times\n", attached);
    for (int i = 0; i < 64; i++) close(sockets[i]);
}

static void fills(void) {
    struct memory memory;
    if (attach(&memory)) exit(4);
    uint32_t *words = (uint32_t *)memory.at;
    for (uint32_t i = 0; i < memory.welcome.chunks; i++)
        __atomic_store_n(&words[STATES / 4 + i], 2, __ATOMIC_RELEASE);
    words[64 / 4] = 0xffffffff;
    usleep(100000);
}

int main(int argc, char **argv) {
    const char *how = argc > 1 ? argv[1] : "truncate";
    if (!strcmp(how, "truncate")) truncates();
    else if (!strcmp(how, "random")) writes_random(argc > 2 ? atol(argv[2]) : 1000000);
    else if (!strcmp(how, "greetings")) greets();
    else fills();
    printf("hostile: %s done\n", how);
    return harm;
}
