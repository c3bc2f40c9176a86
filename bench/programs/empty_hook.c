/* The least a hook can be: linked where a runtime would be, it does nothing. */
__attribute__((no_instrument_function)) void __cyg_profile_func_enter(void *function, void *caller)
{
	(void)function;
	(void)caller;
}
__attribute__((no_instrument_function)) void __cyg_profile_func_exit(void *function, void *caller)
{
	(void)function;
	(void)caller;
}
