/* A thread that computes, and waits for a byte until a signal comes. Prints how many of its reads
 * ended with EINTR. Another thread sends the signal when the first one sleeps. Where the handler
 * has SA_RESTART, it sends the byte, too.
 *
 * usage: cut_short HANDLER ROUNDS, with alarm, end, once, info, realtime or restart as HANDLER; or
 * with none: no signal comes, and the thread writes bytes right behind a slow instruction */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static volatile unsigned long sink;
static volatile int round_of_read, is_over;
static int ends[2], signal_number = SIGALRM, is_restarted, is_of_thread;
static pthread_t reader;

static double now(void)
{
	struct timespec time;
	clock_gettime(CLOCK_MONOTONIC, &time);
	return time.tv_sec + time.tv_nsec * 1e-9;
}

static void work(void)
{
	double end = now() + 0.0008;
	while (now() < end)
		sink++;
}

static void handle(int number) { sink += number; }
static void handle_other(int number) { sink ^= number; }
static void handle_told(int number, siginfo_t *told, void *context) { sink += number; }

static void *interrupt(void *argument)
{
	char path[64], line[64] = "";
	int done = 0;
	snprintf(path, sizeof path, "/proc/self/task/%ld/stat", (long)getpid());
	while (!is_over) {
		if (round_of_read == done) {
			usleep(20);
			continue;
		}
		int file = open(path, O_RDONLY);
		ssize_t length = read(file, line, sizeof line - 1);
		close(file);
		line[length > 0 ? length : 0] = 0;
		if (!strstr(line, ") S"))
			continue;
		done = round_of_read;
		if (is_of_thread)
			pthread_kill(reader, signal_number);
		else
			kill(getpid(), signal_number);
		/* A read that goes on has its byte in the end. */
		double late = now() + (is_restarted ? 0.0002 : 0.5);
		while (round_of_read == done && now() < late && !is_over)
			usleep(20);
		if (is_restarted || round_of_read == done)
			write(ends[1], "", 1);
		while (is_restarted && round_of_read == done && !is_over)
			usleep(20);
	}
	return argument;
}

/* Writes that end with EINTR, which none does: of such a call the processor's registers say the
 * same as of one that is made again. */
static int write_all(int rounds)
{
	int file = open("/dev/null", O_WRONLY), ended = 0;
	for (int i = 0; i < rounds; i++) {
		long result;
		__asm__ volatile("pause\n\tsyscall"
				 : "=a"(result)
				 : "a"((long)SYS_write), "D"((long)file), "S"(""), "d"(1L)
				 : "rcx", "r11", "memory");
		ended += result == -EINTR;
	}
	return ended;
}

int main(int argc, char **argv)
{
	struct sigaction action = {.sa_handler = handle}, other = {.sa_handler = handle_other};
	const char *kind = argc > 2 ? argv[1] : "";
	int rounds = argc > 2 ? atoi(argv[2]) : 0, ended = 0;
	sigset_t all, before;
	pthread_t thread;
	char byte;
	if (!strcmp(kind, "info")) {
		action.sa_sigaction = handle_told;
		action.sa_flags = SA_SIGINFO;
	} else if (!strcmp(kind, "realtime")) {
		signal_number = SIGRTMIN;
		is_of_thread = 1;
	} else if (!strcmp(kind, "end")) {
		signal_number = SIGTERM;
	} else if (!strcmp(kind, "once")) {
		action.sa_flags = SA_RESETHAND;
	} else if (!strcmp(kind, "restart")) {
		action.sa_flags = SA_RESTART;
		is_restarted = 1;
	}
	sigaction(signal_number, &action, 0);
	/* Which no one sends. */
	other.sa_flags = is_restarted || !strcmp(kind, "none") ? 0 : SA_RESTART;
	if (strcmp(kind, "once"))
		sigaction(SIGCHLD, &other, 0);
	if (!strcmp(kind, "none")) {
		printf("%d\n", write_all(rounds * 4000));
		return 0;
	}
	if (pipe(ends))
		return 1;
	reader = pthread_self();
	sigfillset(&all);
	pthread_sigmask(SIG_BLOCK, &all, &before);
	pthread_create(&thread, 0, interrupt, 0);
	pthread_sigmask(SIG_SETMASK, &before, 0);
	for (int i = 1; i <= rounds; i++) {
		work();
		/* With SA_RESETHAND the handler is gone. */
		sigaction(signal_number, &action, 0);
		round_of_read = i;
		ssize_t length = read(ends[0], &byte, 1);
		ended += length < 0 && errno == EINTR;
	}
	is_over = 1;
	printf("%d\n", ended);
	return 0;
}
