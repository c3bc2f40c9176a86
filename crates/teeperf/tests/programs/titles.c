// Writes over its environment, as programs do that set their own title, and sleeps until it reads a line; `title` has it write
// a title over its name.
#include "counted.h"

extern char **environ;

NOINLINE static void sets_title(void) {
    CALLED("sets_title");
    for (char **variable = environ; *variable; variable++) memset(*variable, 'x', strlen(*variable));
}

NOINLINE static void writes(char *name) {
    CALLED("writes");
    size_t room = strlen(name);
    snprintf(memset(name, 0, room), room, "titles: at work");
}

NOINLINE static void red(void) { CALLED("red"); }

int main(int words, char **arguments) {
    char line[32];
    CALLED("main");
    sets_title();
    for (;;) {
        printf("done\n");
        fflush(stdout);
        if (scanf("%31s", line) != 1 || !strcmp(line, "end")) break;
        if (words > 0 && !strcmp(line, "title")) writes(arguments[0]);
        red();
    }
    counted_print();
    return 7;
}
