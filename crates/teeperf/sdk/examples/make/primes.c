/* Counts primes; each number that is asked for is a call. */
#include <stdio.h>
#include <teeperf.h>

static __attribute__((noinline)) int is_prime(int number)
{
	int divisor;
	for (divisor = 2; divisor * divisor <= number; divisor++)
		if (number % divisor == 0)
			return 0;
	return number > 1;
}

static __attribute__((noinline)) int count_primes(int limit)
{
	int count = 0, number;
	TEEPERF_SCOPE("count");
	for (number = 0; number < limit; number++)
		count += is_prime(number);
	TEEPERF_COUNTER("primes", count);
	return count;
}

int main(void)
{
	int sum = 0, limit;
	for (limit = 100; limit <= 300; limit += 100) {
		TEEPERF_MARK("round");
		sum += count_primes(limit);
	}
	printf("%d\n", sum);
	return 0;
}
