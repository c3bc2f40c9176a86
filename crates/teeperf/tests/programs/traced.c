// What a tracer must leave as it is: signals and their order, children and what they end with, stops, executions. `all` says what it
// saw; `killed` ends by a signal; `busy` works until it is ended.
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static volatile unsigned long sink;

static void work(long milliseconds)
{
	struct timespec time;
	unsigned long seed = 9;
	for (long used = 0, first = -1; used < milliseconds;) {
		for (int i = 0; i < 20000; i++) {
			seed ^= seed << 13;
			seed ^= seed >> 7;
			seed ^= seed << 17;
		}
		clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
		long now = time.tv_sec * 1000 + time.tv_nsec / 1000000;
		first = first < 0 ? now : first;
		used = now - first;
	}
	sink = seed;
}

__attribute__((noinline, noipa)) static void work_of_child(void) { work(60); sink++; }
__attribute__((noinline, noipa)) static void work_of_program(void) { work(60); sink++; }

static volatile sig_atomic_t counts[65];
static void count(int number) { counts[number]++; }

static void *thread(void *argument)
{
	work(10);
	return argument;
}

static void signals(void)
{
	struct sigaction action = { .sa_handler = count };
	sigaction(SIGUSR1, &action, NULL);
	sigaction(SIGTRAP, &action, NULL);
	sigaction(SIGRTMIN + 3, &action, NULL);
	for (int i = 0; i < 100; i++) {
		raise(SIGUSR1);
		raise(SIGTRAP);
	}
	sigset_t set, before;
	sigemptyset(&set);
	sigaddset(&set, SIGRTMIN + 3);
	sigprocmask(SIG_BLOCK, &set, &before);
	for (int i = 0; i < 20; i++)
		kill(getpid(), SIGRTMIN + 3);
	sigprocmask(SIG_SETMASK, &before, NULL);
	printf("signals %d %d %d\n", counts[SIGUSR1], counts[SIGTRAP], counts[SIGRTMIN + 3]);
}

static void children(void)
{
	int status;
	pid_t child = fork();
	if (!child) {
		work_of_child();
		_exit(7);
	}
	printf("child %d\n", waitpid(child, &status, 0) == child && WIFEXITED(status) ? WEXITSTATUS(status) : -1);
	child = fork();
	if (!child)
		for (;;)
			pause();
	// Job control: its stop and its going on are told to its parent.
	kill(child, SIGSTOP);
	pid_t told = waitpid(child, &status, WUNTRACED);
	printf("stop %d %d\n", told == child, WIFSTOPPED(status) ? WSTOPSIG(status) : -1);
	kill(child, SIGCONT);
	told = waitpid(child, &status, WCONTINUED);
	printf("on %d %d\n", told == child, WIFCONTINUED(status));
	kill(child, SIGKILL);
	told = waitpid(child, &status, 0);
	printf("killed %d %d\n", told == child, WIFSIGNALED(status) ? WTERMSIG(status) : -1);
	child = vfork();
	if (!child) {
		execl("/bin/true", "true", NULL);
		_exit(9);
	}
	told = waitpid(child, &status, 0);
	printf("vfork %d %d\n", told == child, WEXITSTATUS(status));
}

static void threads(void)
{
	long sum = 0;
	for (int i = 0; i < 40; i++) {
		pthread_t other;
		void *result;
		pthread_create(&other, NULL, thread, (void *)(long)i);
		pthread_join(other, &result);
		sum += (long)result;
	}
	printf("threads %ld\n", sum);
	// A sleep is as long as it was to be. What is left of it the kernel tells at each stop, also of one that it goes on with.
	struct timespec time = { 0, 50000000 }, begin, end;
	clock_gettime(CLOCK_MONOTONIC, &begin);
	int result = nanosleep(&time, NULL);
	clock_gettime(CLOCK_MONOTONIC, &end);
	long slept = (end.tv_sec - begin.tv_sec) * 1000000000L + end.tv_nsec - begin.tv_nsec;
	printf("slept %d %d\n", result, slept >= time.tv_nsec);
}

static void *executes(void *program)
{
	fflush(stdout);
	execl(program, program, "again", NULL);
	return NULL;
}

int main(int number, char **arguments)
{
	const char *what = number > 1 ? arguments[1] : "";
	if (!strcmp(what, "killed")) {
		work(30);
		raise(SIGUSR2);
	}
	if (!strcmp(what, "busy")) {
		puts("busy");
		fflush(stdout);
		for (;;)
			work_of_program();
	}
	if (!strcmp(what, "again")) {
		work_of_program();
		printf("again %d\n", getpid() == atoi(getenv("TRACED_PID")));
		return 0;
	}
	char pid[20];
	snprintf(pid, sizeof pid, "%d", getpid());
	setenv("TRACED_PID", pid, 1);
	signals();
	children();
	threads();
	fflush(stdout);
	// By another thread than the first, while a third runs.
	pthread_t other;
	pthread_create(&other, NULL, executes, arguments[0]);
	for (;;)
		work(10);
}
