/* Threads, as many as processors and more, that work unlike amounts, wait for one another, or
 * do nothing. Threads' own clocks tell the truth, but of mutex: there perf does.
 *
 * two: the same in both; four: work as 1 to 2 to 4 to 8; parked: one works, five wait for ever;
 * mutex: work inside and outside of a lock; short: threads that live for a millisecond. */
#include "truth.h"
#include <pthread.h>
#include <unistd.h>

WORK(small_step, 40)
WORK(large_step, 4000)
WORK(first_work, 400)
WORK(second_work, 4000)
WORK(third_work, 40)
WORK(fourth_work, 40000)

struct worker {
	pthread_t thread;
	unsigned rounds;
	struct part parts[2];
	unsigned times[2];
};

OUTSIDE static void *batches(void *argument)
{
	struct worker *worker = argument;
	uint64_t x = 1;
	for (unsigned round = 0; round < worker->rounds; round++)
		for (unsigned i = 0; i < 2 && worker->parts[i].work; i++)
			x = timed(&worker->parts[i], worker->times[i], x);
	sink = x;
	return NULL;
}

OUTSIDE static void start(pthread_t *thread, void *(*body)(void *), void *argument)
{
	if (pthread_create(thread, NULL, body, argument) != 0)
		exit(1);
}

OUTSIDE static void run_all(struct worker *workers, unsigned count)
{
	for (unsigned i = 0; i < count; i++)
		start(&workers[i].thread, batches, &workers[i]);
	for (unsigned i = 0; i < count; i++)
		pthread_join(workers[i].thread, NULL);
}

OUTSIDE static void two(unsigned rounds)
{
	struct worker workers[2];
	for (unsigned i = 0; i < 2; i++)
		workers[i] = (struct worker){0, rounds,
		                             {{"small_step", small_step, 0}, {"large_step", large_step, 0}},
		                             {2000, 60}};
	run_all(workers, 2);
	for (unsigned i = 0; i < 2; i++)
		workers[0].parts[i].ns += workers[1].parts[i].ns;
	tell(workers[0].parts, 2);
}

OUTSIDE static void four(unsigned rounds)
{
	struct worker workers[] = {
		{0, rounds, {{"first_work", first_work, 0}}, {200}},
		{0, rounds, {{"second_work", second_work, 0}}, {40}},
		{0, rounds, {{"third_work", third_work, 0}}, {8000}},
		{0, rounds, {{"fourth_work", fourth_work, 0}}, {16}},
	};
	run_all(workers, 4);
	for (unsigned i = 0; i < 4; i++)
		tell(workers[i].parts, 1);
}

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t never = PTHREAD_COND_INITIALIZER;

ALONE void *maintain(void *argument)
{
	pthread_mutex_lock(&lock);
	for (;;)
		pthread_cond_wait(&never, &lock);
	return argument;
}

OUTSIDE static void parked(unsigned rounds)
{
	struct part parts[] = {{"large_step", large_step, 0}, {"fourth_work", fourth_work, 0},
	                       {"maintain", NULL, 0}};
	pthread_t threads[5];
	uint64_t x = 1;
	for (unsigned i = 0; i < 5; i++)
		start(&threads[i], maintain, NULL);
	usleep(100000);
	for (unsigned round = 0; round < rounds; round++) {
		x = timed(&parts[0], 40, x);
		x = timed(&parts[1], 2, x);
	}
	sink = x;
	for (unsigned i = 0; i < 5; i++) {
		clockid_t clock;
		pthread_getcpuclockid(threads[i], &clock);
		parts[2].ns += clock_ns(clock);
	}
	tell(parts, 3);
}

static uint64_t shared;

ALONE void enter(void)
{
	pthread_mutex_lock(&lock);
	NO_TAIL_CALL;
}

ALONE void leave(void)
{
	pthread_mutex_unlock(&lock);
	NO_TAIL_CALL;
}

WORK(inside, 2000)
WORK(outside, 3000)
WORK(aside, 500)

OUTSIDE static void *contend(void *argument)
{
	uint64_t x = 1;
	for (unsigned i = 0; i < *(unsigned *)argument * 100; i++) {
		enter();
		shared = inside(shared);
		leave();
		x = outside(x);
		x = repeat(aside, 4, x);
	}
	sink = x;
	return NULL;
}

OUTSIDE static void mutex(unsigned rounds)
{
	pthread_t threads[3];
	for (unsigned i = 0; i < 3; i++)
		start(&threads[i], contend, &rounds);
	for (unsigned i = 0; i < 3; i++)
		pthread_join(threads[i], NULL);
}

/* A life: its own parts, so that no other thread writes to them. */
struct life {
	pthread_t thread;
	struct part parts[2];
};

OUTSIDE static void *live(void *argument)
{
	struct life *life = argument;
	uint64_t x = timed(&life->parts[0], 600, 1);
	sink = timed(&life->parts[1], 8000, x);
	return NULL;
}

OUTSIDE static void short_lives(unsigned rounds)
{
	struct life lives[2];
	for (unsigned j = 0; j < 2; j++)
		lives[j] = (struct life){0, {{"first_work", first_work, 0}, {"small_step", small_step, 0}}};
	for (unsigned i = 0; i < rounds; i++) {
		for (unsigned j = 0; j < 2; j++)
			start(&lives[j].thread, live, &lives[j]);
		for (unsigned j = 0; j < 2; j++)
			pthread_join(lives[j].thread, NULL);
	}
	for (unsigned j = 0; j < 2; j++)
		lives[0].parts[j].ns += lives[1].parts[j].ns;
	tell(lives[0].parts, 2);
}

SCENARIOS({"two", two}, {"four", four}, {"parked", parked}, {"mutex", mutex},
          {"short", short_lives})
