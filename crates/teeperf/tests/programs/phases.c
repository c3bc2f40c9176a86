// Does what it reads, line by line, and answers each line with "done", so that somebody
// outside can do things between two phases: "red 1000" calls red a thousand times, "deep 20"
// goes twenty frames down and reads on there, "up 0" comes back, "pause 0" and "resume 0" say so
// to the recording that it is part of, "end 7" leaves main with that status.
#include "counted.h"
#include <teeperf.h>

NOINLINE static void red(void) { CALLED("red"); }
NOINLINE static void green(void) { CALLED("green"); }
NOINLINE static void blue(void) { CALLED("blue"); }

UNHOOKED static int reads(void);
NOINLINE static void deep(int frames) {
    CALLED("deep");
    if (frames > 1) deep(frames - 1);
    else reads();
}

UNHOOKED static void done(void) {
    printf("done\n");
    fflush(stdout);
}

UNHOOKED static int reads(void) {
    char word[32];
    int times;
    while (scanf("%31s %d", word, &times) == 2) {
        if (!strcmp(word, "deep")) {
            done();
            deep(times);
            continue;
        }
        if (!strcmp(word, "up")) {
            done();
            return 0;
        }
        if (!strcmp(word, "pause")) teeperf_pause();
        else if (!strcmp(word, "resume")) teeperf_resume();
        else if (!strcmp(word, "end")) return times;
        else
            for (int i = 0; i < times; i++) {
                if (!strcmp(word, "red")) red();
                else if (!strcmp(word, "green")) green();
                else if (!strcmp(word, "blue")) blue();
            }
        done();
    }
    return 1;
}

int main(void) {
    CALLED("main");
    int status = reads();
    counted_print();
    return status;
}
