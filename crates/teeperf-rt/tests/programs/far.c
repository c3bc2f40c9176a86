/* Hooks called for an address that no module has, as code made at run time would. */
#include <stdio.h>

void __cyg_profile_func_enter(void *function, void *caller);
void __cyg_profile_func_exit(void *function, void *caller);

__attribute__((noinline)) void near(void)
{
	__cyg_profile_func_enter((void *)0x123456789abcdef0, 0);
	__cyg_profile_func_exit((void *)0x123456789abcdef0, 0);
}

int main(void)
{
	for (int i = 0; i < 5000; i++)
		near();
	return 0;
}
