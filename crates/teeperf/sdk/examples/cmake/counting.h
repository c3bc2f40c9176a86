#pragma once
#include <string>
#include <vector>

/// The words of a text. Throws where there are none.
std::vector<std::string> words_of(const std::string &text);
