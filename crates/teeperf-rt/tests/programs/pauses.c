/* Pauses and resumes itself, on different depths of the stack. */
#include "teeperf.h"
#include <stdio.h>

static volatile int sum;

__attribute__((noinline)) void seen(void) { sum++; }
__attribute__((noinline)) void hidden(void) { sum++; }

__attribute__((noinline)) void resumes(void)
{
	hidden();
	teeperf_resume();
	seen();
}

__attribute__((noinline)) void pauses(void)
{
	seen();
	teeperf_pause();
	hidden();
}

int main(void)
{
	int recording = teeperf_recording();
	for (int i = 0; i < 100; i++) {
		pauses();
		hidden();
		resumes();
	}
	teeperf_note("done");
	printf("%d %d %u\n", recording, sum, teeperf_version());
	return 0;
}
