// A library whose functions call each other by the linkage table, each once: most of the time is the loader's, which looks for them. The host
// loads it anew, for so many milliseconds.
#define TEN(name, n) name(n##0) name(n##1) name(n##2) name(n##3) name(n##4) name(n##5) name(n##6) name(n##7) name(n##8) name(n##9)
#define HUNDRED(name, n) TEN(name, n##0) TEN(name, n##1) TEN(name, n##2) TEN(name, n##3) TEN(name, n##4) \
	TEN(name, n##5) TEN(name, n##6) TEN(name, n##7) TEN(name, n##8) TEN(name, n##9)
#define ALL(name) HUNDRED(name, 1) HUNDRED(name, 2) HUNDRED(name, 3) HUNDRED(name, 4) HUNDRED(name, 5) \
	HUNDRED(name, 6) HUNDRED(name, 7) HUNDRED(name, 8) HUNDRED(name, 9)

#ifdef LIBRARY
#define FUNCTION(n) int function_with_a_name_##n(int x) { return x + n; }
ALL(FUNCTION)
#define CALL(n) sum += function_with_a_name_##n(sum);
int call_all(int sum)
{
	ALL(CALL)
	return sum;
}
#else
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

int main(int count, char **arguments)
{
	double end = (double)clock() / CLOCKS_PER_SEC + atof(arguments[2]) / 1000;
	int sum = 0;
	while ((double)clock() / CLOCKS_PER_SEC < end) {
		void *library = dlopen(arguments[1], RTLD_LAZY);
		int (*call)(int) = library ? (int (*)(int))dlsym(library, "call_all") : 0;
		if (!call)
			return fprintf(stderr, "%s\n", dlerror()), 1;
		sum += call(count);
		dlclose(library);
	}
	printf("%d\n", sum);
	return 0;
}
#endif
