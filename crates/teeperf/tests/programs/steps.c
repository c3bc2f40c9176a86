/* Runs a child that calls a function again and again, and stops it at each system call, as strace
 * does. It prints how often that was, and how often the child called. */
#include <signal.h>
#include <stdio.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

enum { CALLS = 20000 };
static volatile long sink;

__attribute__((noinline)) static void called(void)
{
	sink++;
}

int main(void)
{
	long stops = 0;
	int status;
	pid_t child = fork();
	if (child == 0) {
		ptrace(PTRACE_TRACEME, 0, 0, 0);
		raise(SIGSTOP);
		for (int i = 0; i < CALLS; i++)
			called();
		_exit(0);
	}
	while (waitpid(child, &status, 0) == child && WIFSTOPPED(status)) {
		int number = WSTOPSIG(status);
		int is_own = number == SIGTRAP || number == SIGSTOP;
		stops += number == SIGTRAP;
		ptrace(PTRACE_SYSCALL, child, 0, is_own ? 0 : number);
	}
	printf("%ld %d\n", stops, CALLS);
	return 0;
}
