#include <cstdio>
#include <map>

extern "C" double area_of(double width, double height);

__attribute__((noinline)) static double total_area()
{
    std::map<double, double> shapes = {{1, 2}, {3, 4}, {5, 6}};
    double sum = 0;
    for (const auto &shape : shapes)
        sum += area_of(shape.first, shape.second);
    return sum;
}

int main()
{
    std::printf("%.1f\n", total_area());
    return 0;
}
