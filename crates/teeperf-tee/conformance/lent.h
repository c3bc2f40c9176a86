/* What all programs here share: memory from a file, and a word with whoever runs them. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <teeperf_tee.h>

#define NO_HOOK __attribute__((no_instrument_function))
/* A function that stays one, with a call that stays one. */
#define CALLED __attribute__((noinline, noclone))
#define DOES_SOMETHING __asm__ volatile("" ::: "memory")

struct lent {
	void *base;
	size_t length;
};

/* Maps the file, somewhere or, if it is free, near a place. */
static NO_HOOK __attribute__((unused)) struct lent lent(const char *path, void *near)
{
	struct lent lent = { 0 };
	struct stat about;
	int file = open(path, O_RDWR);

	if (file < 0 || fstat(file, &about)) {
		perror(path);
		exit(2);
	}
	lent.length = about.st_size;
	lent.base = mmap(near, lent.length, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
	if (lent.base == MAP_FAILED) {
		perror("mmap");
		exit(2);
	}
	close(file);
	return lent;
}

static NO_HOOK __attribute__((unused)) void attach(struct lent lent)
{
	int refused = teeperf_attach(lent.base, lent.length);

	if (refused) {
		printf("refused: %d\n", refused);
		exit(3);
	}
}

/* Says how far it came, and waits until it may go on. */
static NO_HOOK __attribute__((unused)) void say(const char *what)
{
	char answer;

	printf("%s\n", what);
	fflush(stdout);
	if (read(0, &answer, 1) != 1)
		exit(4);
}
