/* Children of each kind, with hooked functions on both sides. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static volatile unsigned long sum;

__attribute__((noinline)) void in_parent(void) { sum++; }
__attribute__((noinline)) void in_child(void) { sum++; }
__attribute__((noinline)) void in_grandchild(void) { sum++; }
__attribute__((noinline)) void in_thread(void) { sum++; }
__attribute__((noinline)) void executed(void) { sum++; }

__attribute__((noinline)) void in_handler(void) { sum++; }

void handler(int unused)
{
	(void)unused;
	in_handler();
}

void repeat(void (*what)(void), int n)
{
	while (n--)
		what();
}

void *thread(void *unused)
{
	repeat(in_thread, 100);
	return unused;
}

/* Calls while the process's first thread is still attaching it. */
__attribute__((no_instrument_function)) static void *early(void *unused)
{
	usleep(20000);
	repeat(in_thread, 100);
	return unused;
}

/* How many mappings of memory files this process may write to. */
static int shared_mappings(void)
{
	char line[4096];
	int count = 0;
	FILE *maps = fopen("/proc/self/maps", "r");
	while (maps && fgets(line, sizeof line, maps))
		count += strstr(line, " rw-s ") && strstr(line, "/memfd:");
	return count;
}

static void reap(pid_t child)
{
	int status;
	if (waitpid(child, &status, 0) != child || status != 0)
		exit(9);
}

int main(int argc, char **argv)
{
	const char *kind = argc > 1 ? argv[1] : "";
	pid_t child;
	if (!strcmp(kind, "executed")) {
		repeat(executed, 7);
		return 0;
	}
	repeat(in_parent, 1000);
	if (!strcmp(kind, "fork")) {
		for (int i = 0; i < 3; i++) {
			child = fork();
			if (!child) {
				repeat(in_child, 5000);
				if (!fork()) {
					repeat(in_grandchild, 11);
					_exit(0);
				}
				wait(0);
				_exit(0);
			}
			repeat(in_parent, 1000);
			reap(child);
		}
	} else if (!strcmp(kind, "clone")) {
		child = syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
		if (!child) {
			repeat(in_child, 5000);
			_exit(0);
		}
		repeat(in_parent, 3000);
		reap(child);
	} else if (!strcmp(kind, "maps")) {
		child = fork();
		if (!child) {
			in_child();
			_exit(shared_mappings() != 1);
		}
		reap(child);
	} else if (!strcmp(kind, "signalled")) {
		signal(SIGUSR1, handler);
		child = fork();
		if (!child) {
			repeat(in_child, 5000);
			_exit(0);
		}
		reap(child);
	} else if (!strcmp(kind, "early")) {
		signal(SIGUSR1, SIG_IGN);
		child = fork();
		if (!child) {
			pthread_t id;
			pthread_create(&id, 0, early, 0);
			in_child();
			pthread_join(id, 0);
			repeat(in_child, 10);
			_exit(0);
		}
		reap(child);
	} else if (!strcmp(kind, "fork-thread")) {
		/* The thread that forked calls no hook before another thread of the child does. */
		child = fork();
		if (!child) {
			pthread_t id;
			pthread_create(&id, 0, thread, 0);
			pthread_join(id, 0);
			repeat(in_child, 5000);
			_exit(0);
		}
		repeat(in_parent, 3000);
		reap(child);
	} else if (!strcmp(kind, "vfork")) {
		for (int i = 0; i < 3; i++) {
			child = vfork();
			if (!child) {
				in_child();
				execl("/proc/self/exe", argv[0], "executed", (char *)0);
				_exit(1);
			}
			repeat(in_parent, 1000);
			reap(child);
		}
	} else if (!strcmp(kind, "exec")) {
		execl("/proc/self/exe", argv[0], "executed", (char *)0);
	} else if (!strcmp(kind, "daemon")) {
		if (fork())
			return 0;
		setsid();
		for (int fd = 0; fd < 1024; fd++)
			close(fd);
		clearenv();
		repeat(in_child, 100000);
		if (!fork()) {
			repeat(in_grandchild, 100000);
			_exit(0);
		}
		wait(0);
		_exit(0);
	}
	return 0;
}
