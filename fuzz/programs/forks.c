#include <sys/wait.h>
#include <unistd.h>
static int leaf(int n) { return n + 1; }
static int child(void) { return leaf(6); }
int main(void) {
    int status = 0;
    if (fork() == 0) _exit(child());
    wait(&status);
    return leaf(status >> 8);
}
