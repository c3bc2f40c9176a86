/* Thousands of threads that work for a moment; descriptors are what they are without a profiler. */
#define _GNU_SOURCE
#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

static volatile unsigned long sink;

static void *work(void *unused)
{
	for (int i = 0; i < 20000; i++)
		sink += i;
	return unused;
}

static int open_files(void)
{
	int count = 0;
	DIR *folder = opendir("/proc/self/fd");
	while (readdir(folder))
		count++;
	closedir(folder);
	return count;
}

int main(void)
{
	int before = open_files(), first = open("/dev/null", O_RDONLY);
	for (int round = 0; round < 600; round++) {
		pthread_t threads[8];
		for (int i = 0; i < 8; i++)
			pthread_create(&threads[i], 0, work, 0);
		for (int i = 0; i < 8; i++)
			pthread_join(threads[i], 0);
	}
	close(first);
	int again = open("/dev/null", O_RDONLY);
	close(again);
	printf("%d %d\n", first == again, open_files() - before);
	return 0;
}
