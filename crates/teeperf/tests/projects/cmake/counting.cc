#include "counting.h"
#include <algorithm>

[[gnu::noinline]] static bool is_shorter(const std::string &a, const std::string &b)
{
    return a.size() != b.size() ? a.size() < b.size() : a < b;
}

[[gnu::noinline]] std::size_t count_distinct(std::vector<std::string> words)
{
    std::sort(words.begin(), words.end(), is_shorter);
    return std::unique(words.begin(), words.end()) - words.begin();
}
