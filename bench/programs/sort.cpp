// std::sort and its kin over numbers, pairs and strings: nearly all functions are the
// library's. A few are ours, as in any program. Prints its seconds and a checksum.
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <map>
#include <random>
#include <string>
#include <utility>
#include <vector>

static std::uint64_t checksum;

static void sort_numbers(std::vector<std::uint64_t> numbers)
{
	std::sort(numbers.begin(), numbers.end());
	checksum += numbers[numbers.size() / 3];
}

static void sort_pairs(const std::vector<std::uint64_t> &numbers)
{
	std::vector<std::pair<std::uint32_t, std::uint64_t>> pairs;
	for (std::uint64_t number : numbers)
		pairs.emplace_back(number % 1000, number);
	std::stable_sort(pairs.begin(), pairs.end());
	checksum += pairs[pairs.size() / 2].second;
}

static void sort_strings(const std::vector<std::uint64_t> &numbers)
{
	std::vector<std::string> strings;
	for (std::uint64_t number : numbers)
		strings.push_back(std::to_string(number));
	std::sort(strings.begin(), strings.end());
	checksum += strings[strings.size() / 4].size();
}

static void count(const std::vector<std::uint64_t> &numbers)
{
	std::map<std::uint64_t, int> counts;
	for (std::uint64_t number : numbers)
		counts[number % 5000]++;
	checksum += counts.begin()->second;
}

static double now()
{
	return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

int main()
{
	std::mt19937_64 random(1);
	std::vector<std::uint64_t> numbers(400000);
	for (std::uint64_t &number : numbers)
		number = random();
	double start = now();
	for (int round = 0; round < 3; round++) {
		sort_numbers(numbers);
		sort_pairs(numbers);
		sort_strings(numbers);
		count(numbers);
	}
	std::printf("seconds=%.6f checksum=%llu\n", now() - start, static_cast<unsigned long long>(checksum));
}
