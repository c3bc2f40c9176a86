/* Loads and unloads a library so many times, and calls it each time: usage: loads LIBRARY [TIMES [COPY]].
 * A copy is loaded beside it, every other time before it. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv)
{
	int n = argc > 2 ? atoi(argv[2]) : 1;
	int both = argc > 3;
	const char *paths[2] = {argv[1], argv[3]};
	for (int turn = 0; turn < n; turn++) {
		void *libraries[2];
		for (int i = 0; i <= both; i++) {
			libraries[i] = dlopen(paths[i ^ (both & turn)], RTLD_NOW | RTLD_LOCAL);
			if (!libraries[i])
				return puts(dlerror()), 1;
			((void (*)(int))dlsym(libraries[i], "library"))(3);
		}
		for (int i = 0; i <= both; i++)
			if (dlclose(libraries[i]))
				return 2;
	}
	return 0;
}
