// A library whose function calls back.
int through(int (*function)(int))
{
	int result = function(10);
	__asm__ volatile("");
	return result;
}
