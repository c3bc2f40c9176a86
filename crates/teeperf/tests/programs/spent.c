/* CPU time of its own, of the C library, of the kernel and of hooks; and waiting. Prints how long
   the thread could run and had no processor, in nanoseconds: the second number of schedstat. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static volatile unsigned long sink;
static volatile int length = 1 << 16;
static char from[1 << 16], to[1 << 16];

__attribute__((noinline)) static int tiny(int x)
{
	__asm__ volatile("");
	return x + 1;
}

__attribute__((noinline)) static void loops(void)
{
	for (volatile int i = 0; i < 600000; i++)
		;
}

__attribute__((noinline)) static void calls(void)
{
	int sum = 0;
	for (int i = 0; i < 50000; i++)
		sum = tiny(sum);
	sink += sum;
}

__attribute__((noinline)) static void copies(void)
{
	for (int i = 0; i < 200; i++) {
		memcpy(to, from, length);
		sink += to[i];
	}
}

__attribute__((noinline)) static void writes(int file)
{
	for (int i = 0; i < 3000; i++)
		sink += write(file, "x", 1);
}

__attribute__((noinline)) static void sleeps(void)
{
	struct timespec time = {0, 2000000};
	nanosleep(&time, 0);
}

__attribute__((no_instrument_function)) static void print_delay(void)
{
	unsigned long long ran = 0, waited = 0;
	FILE *file = fopen("/proc/thread-self/schedstat", "r");
	if (!file || fscanf(file, "%llu %llu", &ran, &waited) != 2)
		waited = 0;
	printf("%llu\n", waited);
}

int main(void)
{
	int file = open("/dev/null", O_WRONLY);
	for (int i = 0; i < 300; i++) {
		loops();
		calls();
		copies();
		writes(file);
		sleeps();
	}
	print_delay();
	return 0;
}
