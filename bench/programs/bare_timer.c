// Preloaded into a program, the yardstick of a sampler within it: each thread has an event of the kernel's that sends it a signal every
// TIMER_PERIOD_NS of its processor time, as a sampler's threads have, and the signal's handler does nothing.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

typedef void *start(void *);
typedef int create(pthread_t *, const pthread_attr_t *, start *, void *);

static long period;

static void expired(int number, siginfo_t *info, void *context) { (void)number, (void)info, (void)context; }

static void begins(void)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE, .size = PERF_ATTR_SIZE_VER0, .config = PERF_COUNT_SW_TASK_CLOCK,
		.sample_period = period, .disabled = 1, .exclude_hv = 1, .wakeup_events = 1,
	};
	struct f_owner_ex owner = { F_OWNER_TID, gettid() };
	int file = syscall(SYS_perf_event_open, &attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
	if (file < 0 || fcntl(file, F_SETOWN_EX, &owner) || fcntl(file, F_SETSIG, SIGURG) || fcntl(file, F_SETFL, O_ASYNC) ||
	    ioctl(file, PERF_EVENT_IOC_ENABLE, 0)) {
		perror("bare_timer");
		_exit(96);
	}
}

struct first {
	start *start;
	void *argument;
};

static void *run(void *at)
{
	struct first first = *(struct first *)at;
	free(at);
	begins();
	return first.start(first.argument);
}

int pthread_create(pthread_t *id, const pthread_attr_t *attributes, start *start, void *argument)
{
	create *next = (create *)dlsym(RTLD_NEXT, "pthread_create");
	struct first *first = malloc(sizeof *first);
	*first = (struct first){ start, argument };
	return next(id, attributes, run, first);
}

__attribute__((constructor)) static void begin(void)
{
	const char *wish = getenv("TIMER_PERIOD_NS");
	struct sigaction action = { .sa_sigaction = expired, .sa_flags = SA_SIGINFO | SA_RESTART | SA_ONSTACK };
	period = wish ? atol(wish) : 0;
	if (period <= 0)
		return;
	sigfillset(&action.sa_mask);
	sigaction(SIGURG, &action, NULL);
	begins();
}
