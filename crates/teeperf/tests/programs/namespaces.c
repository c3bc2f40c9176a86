// Loads the library of the second argument, `plugin.c`, into its own namespace ("same", dlopen) or into another
// ("own", dlmopen), calls it, and stays for as many milliseconds as the third argument says.
#define _GNU_SOURCE
#include "counted.h"
#include <dlfcn.h>

int main(int argc, char **argv) {
    CALLED("main");
    if (argc < 3) return 9;
    int is_own = !strcmp(argv[1], "own");
    void *library = is_own ? dlmopen(LM_ID_NEWLM, argv[2], RTLD_NOW) : dlopen(argv[2], RTLD_NOW);
    if (!library) {
        fprintf(stderr, "%s\n", dlerror());
        return 9;
    }
    long (*run)(long) = (long (*)(long))dlsym(library, "plugin_run");
    if (!run) return 9;
    run(100);
    usleep((useconds_t)(1000 * counted_argument(argc, argv, 3, 0)));
    return 0;
}
