#pragma once
#include <string>
#include <vector>
std::size_t count_distinct(std::vector<std::string> words);
