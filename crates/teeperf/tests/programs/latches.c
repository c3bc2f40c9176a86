/* Takes signals for itself, as servers do that wake their processes by one: a child for each of its
 * arguments, "blocks" or "handles" with the names of signals behind it. Each then works, and waits
 * as long as it has worked. */
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static volatile long sink;

__attribute__((no_instrument_function)) static long cpu_ms(void)
{
	struct timespec now;
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
	return now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

__attribute__((noinline)) static void works(void)
{
	long end = cpu_ms() + 200;
	while (cpu_ms() < end)
		for (int i = 0; i < 10000; i++)
			sink += i;
}

__attribute__((noinline)) static int waits(int file)
{
	struct pollfd ready = {file, POLLIN, 0};
	return poll(&ready, 1, 200);
}

static void ignores(int signal)
{
	sink += signal;
}

static int child(const char *words)
{
	int file = -1, wakes = 0, signals[] = {SIGURG, SIGWINCH};
	const char *names[] = {"SIGURG", "SIGWINCH"};
	sigset_t set;
	sigemptyset(&set);
	for (int i = 0; i < 2; i++)
		if (strstr(words, names[i])) {
			struct sigaction action = {.sa_handler = ignores};
			sigaddset(&set, signals[i]);
			if (!strncmp(words, "handles", 7))
				sigaction(signals[i], &action, 0);
		}
	if (!strncmp(words, "blocks", 6)) {
		sigprocmask(SIG_BLOCK, &set, 0);
		file = signalfd(-1, &set, SFD_NONBLOCK);
	}
	for (int i = 0; i < 5; i++) {
		works();
		wakes += waits(file) != 0;
	}
	/* A signal of its own comes as ever. */
	if (file >= 0 && strstr(words, "SIGURG")) {
		kill(getpid(), SIGURG);
		wakes += 100 * waits(file);
	}
	return wakes;
}

int main(int count, char **arguments)
{
	for (int i = 1; i < count; i++) {
		int status = 0;
		if (!fork())
			exit(child(arguments[i]));
		wait(&status);
		printf("%s: %d\n", arguments[i], WEXITSTATUS(status));
	}
	return 0;
}
