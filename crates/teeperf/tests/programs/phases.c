// Does what it reads, line by line, and answers each line with "done", so that somebody
// outside can do things between two phases: "red 1000" calls red a thousand times, "deep 20"
// goes twenty frames down and reads on there, "up" comes back.
#include "counted.h"

NOINLINE static void red(void) { CALLED("red"); }
NOINLINE static void green(void) { CALLED("green"); }
NOINLINE static void blue(void) { CALLED("blue"); }

UNHOOKED static void reads(void);
NOINLINE static void deep(int frames) {
    CALLED("deep");
    if (frames > 1) deep(frames - 1);
    else reads();
}

UNHOOKED static void reads(void) {
    char word[32];
    int times;
    while (scanf("%31s %d", word, &times) == 2) {
        if (!strcmp(word, "up")) {
            printf("done\n");
            fflush(stdout);
            return;
        }
        if (!strcmp(word, "deep")) {
            printf("done\n");
            fflush(stdout);
            deep(times);
            continue;
        }
        for (int i = 0; i < times; i++) {
            if (!strcmp(word, "red")) red();
            else if (!strcmp(word, "green")) green();
            else if (!strcmp(word, "blue")) blue();
        }
        printf("done\n");
        fflush(stdout);
    }
}

int main(void) {
    CALLED("main");
    reads();
    counted_print();
    return 0;
}
