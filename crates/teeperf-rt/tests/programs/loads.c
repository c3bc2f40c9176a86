/* Loads and unloads a library so many times, and calls it each time. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv)
{
	int n = argc > 2 ? atoi(argv[2]) : 1;
	while (n--) {
		void *library = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
		if (!library)
			return puts(dlerror()), 1;
		((void (*)(int))dlsym(library, "library"))(3);
		if (dlclose(library))
			return 2;
	}
	return 0;
}
