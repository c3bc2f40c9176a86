#include "counting.h"
#include <sstream>
#include <stdexcept>

[[gnu::noinline]] static void add(std::vector<std::string> &words, const std::string &word)
{
	words.push_back(word);
}

std::vector<std::string> words_of(const std::string &text)
{
	std::vector<std::string> words;
	std::istringstream rest(text);
	for (std::string word; rest >> word;)
		add(words, word);
	if (words.empty())
		throw std::invalid_argument("no words");
	return words;
}
