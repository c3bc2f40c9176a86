// Does what it reads, line by line, and answers each line with "done", so that somebody
// outside can do things between two phases: "red 1000" calls red a thousand times, "deep 20"
// goes twenty frames down and reads on there, "up 0" comes back, "pause 0" and "resume 0" say so
// to the recording that it is part of, "end 7" leaves main with that status. "thread 0" begins a thread that
// sleeps in a function of its own; "wake 0" has it leave that, and "go 5" call red five times and end. "leaver 0" begins a
// thread that ends in the midst of a function, and waits for that; "first 0" ends main's thread so. "children 5" forks
// as many, one after the other, which fill more memory than one has, and prints how many of them slept now and then.
#include "counted.h"
#include <pthread.h>
#include <stdatomic.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <teeperf.h>

NOINLINE static void red(void) { CALLED("red"); }
NOINLINE static void green(void) { CALLED("green"); }
NOINLINE static void blue(void) { CALLED("blue"); }

static pthread_t thread;
static atomic_int stage, times_to_go;

UNHOOKED static void reaches(int wanted) {
    while (stage != wanted) usleep(1000);
}

NOINLINE static void sleeps(void) {
    CALLED("sleeps");
    stage = 1;
    reaches(2);
}

NOINLINE static void *sleeper(void *unused) {
    CALLED("sleeper");
    sleeps();
    stage = 3;
    reaches(4);
    for (int i = 0; i < times_to_go; i++) red();
    return unused;
}

NOINLINE static void *leaves(void *unused) {
    CALLED("leaves");
    pthread_exit(unused);
}

UNHOOKED static void threads(const char *word, int times) {
    if (!strcmp(word, "leaver")) {
        pthread_t leaver;
        pthread_create(&leaver, NULL, leaves, NULL);
        pthread_join(leaver, NULL);
    } else if (!strcmp(word, "thread")) {
        pthread_create(&thread, NULL, sleeper, NULL);
        reaches(1);
    } else if (!strcmp(word, "wake")) {
        stage = 2;
        reaches(3);
    } else if (!strcmp(word, "go")) {
        times_to_go = times;
        stage = 4;
        pthread_join(thread, NULL);
    }
}

UNHOOKED static void children(int number) {
    int slept = 0;
    for (int i = 0; i < number; i++) {
        struct rusage used;
        pid_t child = fork();
        if (!child) {
            for (int call = 0; call < 1000000; call++) red();
            _exit(0);
        }
        wait4(child, NULL, 0, &used);
        slept += used.ru_nvcsw > 5;
    }
    printf("slept %d\n", slept);
}

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
        else if (!strcmp(word, "children")) children(times);
        else if (!strcmp(word, "first")) {
            done();
            leaves(NULL);
        }
        else if (strcmp(word, "red") && strcmp(word, "green") && strcmp(word, "blue")) threads(word, times);
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
