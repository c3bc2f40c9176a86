/* A function whose debug information has a type of the compiler's own. */
#include <stdarg.h>

int sum(int n, ...)
{
	va_list list;
	va_start(list, n);
	int all = 0;
	while (n-- > 0)
		all += va_arg(list, int);
	va_end(list);
	return all;
}
