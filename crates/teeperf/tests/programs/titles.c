// Writes over its environment, as programs do that set their own title, and sleeps until it reads a line.
#include "counted.h"

extern char **environ;

NOINLINE static void sets_title(void) {
    CALLED("sets_title");
    for (char **variable = environ; *variable; variable++) memset(*variable, 'x', strlen(*variable));
}

NOINLINE static void red(void) { CALLED("red"); }

int main(void) {
    char line[32];
    CALLED("main");
    sets_title();
    for (;;) {
        printf("done\n");
        fflush(stdout);
        if (scanf("%31s", line) != 1 || !strcmp(line, "end")) break;
        red();
    }
    counted_print();
    return 7;
}
