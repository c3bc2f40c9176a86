// Copies standard input to standard output, says on standard error whether these are
// terminals and what it was called with, and ends with the status it is told; or by the
// signal, when that is a negative number.
#include "counted.h"
#include <signal.h>

NOINLINE static int copies(void) {
    CALLED("copies");
    int byte, count = 0;
    while ((byte = getchar()) != EOF) {
        putchar(byte);
        count++;
    }
    return count;
}

int main(int argc, char **argv) {
    CALLED("main");
    int status = (int)counted_argument(argc, argv, 1, 0), bytes = copies();
    fflush(stdout);
    fprintf(stderr, "bytes %d", bytes);
    for (int i = 2; i < argc; i++) fprintf(stderr, " <%s>", argv[i]);
    fprintf(stderr, "\n");
    if (status < 0) raise(-status);
    return status;
}
