/* System calls that wait, in a program that takes EINTR for an error; and signals of its own. */
#define _GNU_SOURCE
#include <errno.h>
#include <linux/futex.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define CONNECTIONS 64

static volatile unsigned long sink;
static volatile sig_atomic_t urgent, traps, alarms, is_over;

static void work(void)
{
	for (int i = 0; i < 200000; i++)
		sink += i;
}

static void check(const char *what, int is_right)
{
	if (is_right)
		return;
	printf("%s: %s\n", what, strerror(errno));
	exit(1);
}

static void wait_for_a_while(int round)
{
	struct timespec time = {0, 1000000};
	struct timeval select_time = {0, 1000};
	int word = 0, epoll = epoll_create1(0);
	struct epoll_event event;
	check("nanosleep", nanosleep(&time, 0) == 0);
	check("clock_nanosleep", clock_nanosleep(CLOCK_MONOTONIC, 0, &time, 0) == 0);
	check("poll", poll(0, 0, 1) == 0);
	check("select", select(0, 0, 0, 0, &select_time) == 0);
	check("epoll_wait", epoll_wait(epoll, &event, 1, 1) == 0);
	syscall(SYS_futex, &word, FUTEX_WAIT, 0, &time, 0, 0);
	check("futex", errno == ETIMEDOUT);
	close(epoll);
	if (round % 16 == 0) {
		pid_t child = fork();
		if (child == 0)
			_exit(0);
		check("waitpid", waitpid(child, 0, 0) == child);
	}
}

static void on_urgent(int signal, siginfo_t *information, void *context)
{
	(void)context;
	check("SIGURG", signal == SIGURG && information->si_code == SI_TKILL);
	urgent++;
}

/* By an instruction, which stands where it was interrupted; or by the thread itself. */
static void on_trap(int signal, siginfo_t *information, void *context)
{
	(void)context;
	int code = traps % 2 == 0 ? SI_KERNEL : SI_TKILL;
	check("SIGTRAP", signal == SIGTRAP && information->si_code == code);
	traps++;
}

static void on_alarm(int signal)
{
	(void)signal;
	alarms++;
}

static void *blocks_all(void *unused)
{
	sigset_t all, before;
	sigfillset(&all);
	pthread_sigmask(SIG_BLOCK, &all, &before);
	for (int i = 0; i < 300; i++)
		work();
	return unused;
}

/* Counts sleeps that a signal ended: one for the process comes to the thread that works. */
static void *sleeps(void *ended)
{
	struct timespec time = {0, 2000000};
	while (!is_over)
		*(int *)ended += nanosleep(&time, 0) != 0;
	return 0;
}

/* Waits for connections: for some milliseconds each, and for less than that. */
static void *accepts(void *listener)
{
	struct timeval time = {0, 1000};
	int at = *(int *)listener;
	for (int i = 0; i < CONNECTIONS; i++) {
		int socket = accept(at, 0, 0);
		check("accept", socket >= 0);
		close(socket);
		work();
	}
	/* The kernel starts this one anew for no handler. */
	check("setsockopt", setsockopt(at, SOL_SOCKET, SO_RCVTIMEO, &time, sizeof time) == 0);
	for (int i = 0; i < CONNECTIONS; i++) {
		work();
		check("accept for a while", accept(at, 0, 0) == -1 && errno == EAGAIN);
	}
	return 0;
}

static void connect_to_it(void)
{
	/* A name of the kernel's choice. */
	struct sockaddr_un name = {.sun_family = AF_UNIX};
	socklen_t size = sizeof name;
	struct timespec time = {0, 2000000};
	int listener = socket(AF_UNIX, SOCK_STREAM, 0);
	pthread_t thread;
	check("bind", bind(listener, (struct sockaddr *)&name, sizeof name.sun_family) == 0);
	check("listen", listen(listener, 1) == 0);
	check("name", getsockname(listener, (struct sockaddr *)&name, &size) == 0);
	pthread_create(&thread, 0, accepts, &listener);
	for (int i = 0; i < CONNECTIONS; i++) {
		int caller = socket(AF_UNIX, SOCK_STREAM, 0);
		work();
		check("nanosleep", nanosleep(&time, 0) == 0);
		check("connect", connect(caller, (struct sockaddr *)&name, size) == 0);
		close(caller);
	}
	pthread_join(thread, 0);
	close(listener);
}

static void *ends(void *unused)
{
	return unused;
}

/* Looks for children of any kind, of which there are none, while threads begin. */
static void *looks_for_children(void *unused)
{
	while (!is_over)
		check("no children", waitpid(-1, 0, __WALL | WNOHANG) == -1 && errno == ECHILD);
	return unused;
}

static void begin_threads(void)
{
	pthread_t looks, thread;
	pthread_create(&looks, 0, looks_for_children, 0);
	for (int i = 0; i < 200; i++) {
		pthread_create(&thread, 0, ends, 0);
		pthread_join(thread, 0);
	}
	is_over = 1;
	pthread_join(looks, 0);
	is_over = 0;
}

int main(void)
{
	struct sigaction action = {.sa_sigaction = on_urgent, .sa_flags = SA_SIGINFO}, before;
	struct sigaction trap = {.sa_sigaction = on_trap, .sa_flags = SA_SIGINFO};
	struct sigaction alarm = {.sa_handler = on_alarm, .sa_flags = SA_RESTART};
	struct itimerval often = {{0, 5000}, {0, 5000}}, never = {0};
	pthread_t thread;
	int ended = 0;
	for (int i = 0; i < 64; i++) {
		work();
		wait_for_a_while(i);
	}
	connect_to_it();
	begin_threads();
	pthread_create(&thread, 0, blocks_all, 0);
	pthread_join(thread, 0);
	check("sigaction", sigaction(SIGURG, &action, &before) == 0);
	check("what was before", before.sa_handler == SIG_DFL);
	for (int i = 0; i < 64; i++) {
		work();
		raise(SIGURG);
	}
	check("sigaction", sigaction(SIGURG, 0, &before) == 0);
	check("what is now", before.sa_sigaction == on_urgent);
	check("signal", signal(SIGURG, SIG_IGN) == (void (*)(int))on_urgent);
	raise(SIGURG);
	sigaction(SIGTRAP, &trap, 0);
	for (int i = 0; i < 64; i++) {
		work();
		__asm__ volatile("int3");
		work();
		raise(SIGTRAP);
	}
	sigaction(SIGPROF, &alarm, 0);
	pthread_create(&thread, 0, sleeps, &ended);
	setitimer(ITIMER_PROF, &often, 0);
	for (int i = 0; i < 8000; i++)
		work();
	setitimer(ITIMER_PROF, &never, 0);
	is_over = 1;
	pthread_join(thread, 0);
	printf("urgent %d, traps %d, ", (int)urgent, (int)traps);
	printf("alarms %s, ", alarms > 10 ? "some" : "none");
	printf("sleeps that ended %s\n", 10 * ended > alarms ? "some" : "next to none");
	return 0;
}
