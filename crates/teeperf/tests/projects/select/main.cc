// Calls of every kind, so many of each: what is left out is seen by what is missing.
#include <cstdio>
#include "shapes.h"

extern "C" int first(int), second(int);

namespace {
int hidden(int x) { return x * 3; }
}  // namespace

template <class T> T twice(T x) { return x + x; }

int thrower(int x)
{
    if (x % 2) throw x;
    return x;
}

int choose(int x)
{
    switch (x % 6) {
    case 0: return first(x);
    case 1: return second(x) + 1;
    case 2: return hidden(x) - 3;
    case 3: return twice(x) * 5;
    case 4: return x + 70;
    default: return x ^ 11;
    }
}

int main()
{
    int sum = 0;
    auto squared = [](int x) { return x * x; };
    for (int i = 0; i < 60; i++) {
        sum += choose(i) + squared(i);
        try {
            sum += thrower(i);
        } catch (int) {
            sum++;
        }
    }
    for (int i = 0; i < 7; i++) {
        Round round(i);
        Round more = round + round;
        sum += more.area() + static_cast<int>(twice(1.5));
    }
    std::printf("%d\n", sum);
}
