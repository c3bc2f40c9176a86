#include "counting.h"
#include <iostream>

[[gnu::noinline]] static int next_number(int number)
{
    return number * 7919 % 211;
}

int main()
{
    std::vector<std::string> words;
    for (int i = 0; i < 500; i++)
        words.push_back(std::to_string(next_number(i)));
    std::cout << count_distinct(words) << "\n";
    return 0;
}
