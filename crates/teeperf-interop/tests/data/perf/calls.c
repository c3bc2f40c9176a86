/* What the files in this folder are of: a thread beside the first, a process of its own, page faults. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

static volatile unsigned long sum;

__attribute__((noinline)) void leaf(int n) {
    for (int i = 0; i < n; i++) sum += i;
}

__attribute__((noinline)) void deep(int depth, int n) {
    if (depth > 0) deep(depth - 1, n);
    else leaf(n);
    sum++;
}

static void *run(void *rounds) {
    prctl(PR_SET_NAME, "worker");
    for (long i = 0; i < (long)rounds; i++) deep(4, 3000000);
    return NULL;
}

int main(int count, char **arguments) {
    long rounds = count > 1 ? atol(arguments[1]) : 10;
    pthread_t thread;
    pthread_create(&thread, NULL, run, (void *)rounds);
    for (long i = 0; i < rounds; i++) {
        char *memory = malloc(1 << 20);
        memset(memory, 1, 1 << 20);
        sum += memory[99];
        free(memory);
        deep(2, 3000000);
    }
    pthread_join(thread, NULL);
    if (fork() == 0) {
        deep(3, 3000000 * (int)rounds);
        _exit(0);
    }
    wait(NULL);
    return 0;
}
