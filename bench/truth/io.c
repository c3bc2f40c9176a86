/* Functions that go into the kernel beside one that does not.
 *
 * files: batches that the thread's clock times; echo: two threads that hand a byte to and fro
 * through pipes and work between, where it times each call; forks: processes that each do a
 * part, where perf tells the truth. */
#include "truth.h"
#include <fcntl.h>
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

static int null_fd, zero_fd, file_fd;
static char buffer[1 << 16];

OUTSIDE static inline void must(long result)
{
	if (result < 0) {
		perror("io");
		exit(1);
	}
}

ALONE uint64_t write_byte(uint64_t x)
{
	must(write(null_fd, buffer, 1));
	return x + 1;
}

ALONE uint64_t read_zeros(uint64_t x)
{
	must(read(zero_fd, buffer, sizeof buffer));
	return x + (uint64_t)buffer[0];
}

ALONE uint64_t write_page(uint64_t x)
{
	must(pwrite(file_fd, buffer, 4096, (off_t)(x % 256) * 4096));
	return x + 1;
}

WORK(compute, 800)

OUTSIDE static void files(unsigned rounds)
{
	struct part parts[] = {{"write_byte", write_byte, 0},
	                       {"read_zeros", read_zeros, 0},
	                       {"write_page", write_page, 0},
	                       {"compute", compute, 0}};
	uint64_t x = 1;
	char name[] = "truth-io-XXXXXX";
	must(null_fd = open("/dev/null", O_WRONLY));
	must(zero_fd = open("/dev/zero", O_RDONLY));
	must(file_fd = mkstemp(name));
	unlink(name);
	while (rounds--) {
		x = timed(&parts[0], 2000, x);
		x = timed(&parts[1], 100, x);
		x = timed(&parts[2], 400, x);
		x = timed(&parts[3], 500, x);
	}
	sink = x;
	tell(parts, 4);
}

static int there[2], back[2];

ALONE void send_byte(int fd) { must(write(fd, buffer, 1)); }

ALONE void receive_byte(int fd)
{
	char byte;
	must(read(fd, &byte, 1));
}

WORK(ask, 8000)
WORK(reply, 24000)

static struct part asking[] = {{"ask", NULL, 0}, {"send_byte", NULL, 0}, {"receive_byte", NULL, 0}};
static struct part replying[] = {{"reply", NULL, 0}, {"", NULL, 0}, {"", NULL, 0}};

/* Works, sends and receives; or receives first. */
OUTSIDE static void turn(struct part *parts, work_fn *work, int to, int from, int is_server)
{
	uint64_t start = cpu_ns();
	if (is_server) {
		receive_byte(from);
		parts[2].ns += cpu_since(start);
		start = cpu_ns();
	}
	sink = work(sink);
	parts[0].ns += cpu_since(start);
	start = cpu_ns();
	send_byte(to);
	parts[1].ns += cpu_since(start);
	start = cpu_ns();
	if (!is_server) {
		receive_byte(from);
		parts[2].ns += cpu_since(start);
	}
}

OUTSIDE static void *serve(void *argument)
{
	for (unsigned i = 0; i < *(unsigned *)argument * 10; i++)
		turn(replying, reply, back[1], there[0], 1);
	return NULL;
}

OUTSIDE static void echo(unsigned rounds)
{
	pthread_t server;
	must(pipe(there));
	must(pipe(back));
	if (pthread_create(&server, NULL, serve, &rounds) != 0)
		exit(1);
	for (unsigned i = 0; i < rounds * 10; i++)
		turn(asking, ask, there[1], back[0], 0);
	pthread_join(server, NULL);
	asking[1].ns += replying[1].ns;
	asking[2].ns += replying[2].ns;
	tell(asking, 3);
	tell(replying, 1);
}

WORK(parent_work, 1000)
WORK(child_work, 300)
WORK(grandchild_work, 30)

ALONE void spawn(unsigned rounds, unsigned levels)
{
	pid_t child = fork();
	must(child);
	if (child == 0) {
		work_fn *work = levels ? child_work : grandchild_work;
		unsigned times = levels ? 3000 : 20000;
		if (levels)
			spawn(rounds, levels - 1);
		for (unsigned i = 0; i < rounds; i++)
			sink = repeat(work, times, sink);
		while (levels && wait(NULL) > 0)
			;
		_exit(0);
	}
}

OUTSIDE static void forks(unsigned rounds)
{
	spawn(rounds, 1);
	for (unsigned i = 0; i < rounds; i++)
		sink = repeat(parent_work, 1500, sink);
	wait(NULL);
}

SCENARIOS({"files", files}, {"echo", echo}, {"forks", forks})
