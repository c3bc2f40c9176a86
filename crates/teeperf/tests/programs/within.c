// Threads and children that a library within them samples: each ends another way, and the program has uses of its own for signals.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static volatile unsigned long sink;
static volatile long cleaned;

__attribute__((noinline)) static void spin(void)
{
	for (long turn = 0; turn < 20000; turn++)
		sink += turn;
}

static long used_ms(void)
{
	struct timespec time;
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
	return time.tv_sec * 1000L + time.tv_nsec / 1000000;
}

#define WORK(name)                                                                                                     \
	__attribute__((noinline)) static void name(long milliseconds)                                                  \
	{                                                                                                              \
		for (long end = used_ms() + milliseconds; used_ms() < end;)                                            \
			spin();                                                                                        \
	}
WORK(in_main)
WORK(in_returning)
WORK(in_exiting)
WORK(in_cancelled)
WORK(in_child)
WORK(in_executed)

static void clean(void *unused)
{
	(void)unused;
	cleaned++;
}

static void *returning(void *unused)
{
	pthread_setname_np(pthread_self(), "returning");
	in_returning(150);
	return unused;
}

static void *exiting(void *unused)
{
	pthread_cleanup_push(clean, NULL);
	in_exiting(150);
	pthread_exit(unused);
	pthread_cleanup_pop(0);
}

static void *cancelled(void *unused)
{
	pthread_cleanup_push(clean, NULL);
	for (;;) {
		in_cancelled(50);
		pthread_testcancel();
	}
	pthread_cleanup_pop(0);
	return unused;
}

static int threads(void)
{
	pthread_t all[3];
	pthread_create(&all[0], NULL, returning, NULL);
	pthread_create(&all[1], NULL, exiting, NULL);
	pthread_create(&all[2], NULL, cancelled, NULL);
	in_main(100);
	usleep(200000);
	pthread_cancel(all[2]);
	void *results[3];
	for (int i = 0; i < 3; i++)
		pthread_join(all[i], &results[i]);
	// Places of threads that have ended are given again.
	for (int i = 0; i < 600; i++) {
		pthread_t short_lived;
		if (pthread_create(&short_lived, NULL, (void *(*)(void *))usleep, (void *)100))
			return 90;
		pthread_join(short_lived, NULL);
	}
	return results[2] == PTHREAD_CANCELED && cleaned == 2 ? 0 : 91;
}

static int children(const char *own)
{
	// Of those that are about to execute something, each may have a signal on its way.
	for (int i = 0; i < 300; i++) {
		pid_t child = fork();
		if (!child) {
			in_child(2);
			execl("/bin/true", "true", NULL);
			_exit(92);
		}
		int status;
		waitpid(child, &status, 0);
		if (status)
			return 98;
	}
	pid_t child = fork();
	if (!child) {
		in_child(200);
		execl(own, own, "executed", NULL);
		_exit(92);
	}
	in_main(100);
	int status;
	waitpid(child, &status, 0);
	printf("child %d\n", child);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 93;
}

static volatile long own_signals, own_timers;

static void own(int signal, siginfo_t *info, void *context)
{
	(void)context;
	own_signals += signal == SIGURG && info->si_code == SI_TKILL;
	own_timers += signal == SIGPROF && info->si_code == SI_KERNEL;
}

// The program's own signals, by the number that samples come by too, a profiler's timer, and masks that leave no signal through.
static int signals(void)
{
	sigset_t all;
	sigfillset(&all);
	sigprocmask(SIG_BLOCK, &all, NULL);
	in_main(200);
	sigemptyset(&all);
	sigprocmask(SIG_SETMASK, &all, NULL);
	struct sigaction action = { .sa_sigaction = own, .sa_flags = SA_SIGINFO | SA_RESTART }, before;
	sigaction(SIGURG, &action, &before);
	if (before.sa_handler != SIG_DFL)
		return 94;
	sigaction(SIGPROF, &action, NULL);
	struct itimerval every = { { 0, 10000 }, { 0, 10000 } };
	setitimer(ITIMER_PROF, &every, NULL);
	for (int i = 0; i < 100; i++) {
		in_returning(3);
		pthread_kill(pthread_self(), SIGURG);
	}
	memset(&every, 0, sizeof every);
	setitimer(ITIMER_PROF, &every, NULL);
	sigaction(SIGURG, NULL, &before);
	if (before.sa_sigaction != own)
		return 95;
	printf("own %ld %ld\n", own_signals, own_timers);
	if (signal(SIGURG, SIG_DFL) != (void (*)(int))own)
		return 96;
	// Which does nothing, as it would anyhow.
	raise(SIGURG);
	return 0;
}

// As daemons do, by each of the ways that there are.
static int closes(void)
{
	in_main(50);
	for (int file = 3; file < 1024; file++)
		close(file);
	in_returning(50);
	close_range(3, ~0u, 0);
	in_exiting(50);
	closefrom(3);
	in_cancelled(50);
	// Nothing of what stays is seen.
	int file = dup(0);
	return file == 3 ? 0 : 97;
}

// Built as a library as well, whose code is there later than the program's.
void in_library(long milliseconds)
{
	for (long end = used_ms() + milliseconds; used_ms() < end;)
		spin();
}

static int loads(const char *library)
{
	in_main(100);
	void *loaded = dlopen(library, RTLD_NOW);
	void (*work)(long) = loaded ? (void (*)(long))dlsym(loaded, "in_library") : NULL;
	if (!work)
		return 88;
	work(200);
	return 0;
}

// Over the samples: rings of all that there may be, and what stands before them.
static int scribbles(void)
{
	in_main(100);
	FILE *maps = fopen("/proc/self/maps", "r");
	char line[512];
	unsigned long *begin = NULL, *end = NULL;
	while (fgets(line, sizeof line, maps))
		if (strstr(line, "teeperf-samples"))
			sscanf(line, "%p-%p", (void **)&begin, (void **)&end);
	unsigned long random = 88172645463325252ul, size = (end - begin) / 8;
	for (int round = 0; round < 40; round++) {
		for (unsigned long *word = begin; word < begin + size; word++) {
			random ^= random << 13;
			random ^= random >> 7;
			random ^= random << 17;
			*word = random % 3 ? random % 4096 : random;
		}
		usleep(5000);
	}
	in_returning(50);
	return begin ? 0 : 89;
}

int main(int count, char **arguments)
{
	const char *what = count > 1 ? arguments[1] : "";
	if (!strcmp(what, "threads"))
		return threads();
	if (!strcmp(what, "children"))
		return children(arguments[0]);
	if (!strcmp(what, "signals"))
		return signals();
	if (!strcmp(what, "scribbles"))
		return scribbles();
	if (!strcmp(what, "loads"))
		return loads(arguments[2]);
	if (!strcmp(what, "closes"))
		return closes();
	if (!strcmp(what, "executed")) {
		in_executed(100);
		return 0;
	}
	in_main(200);
	return 0;
}
