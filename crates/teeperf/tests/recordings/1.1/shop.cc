// A program of threads, a child process, exceptions and recursion: small, and never the same length twice.
#include <cstdio>
#include <stdexcept>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vector>

static volatile unsigned sink;

static void work(unsigned n)
{
    for (unsigned i = 0; i < n; i++)
        sink += i * i;
}

static unsigned depth(unsigned n)
{
    work(2000);
    return n == 0 ? 0 : 1 + depth(n - 1);
}

static void refuse(int item)
{
    if (item % 3 == 0)
        throw std::runtime_error("none left");
}

static void sell(int item)
{
    try {
        refuse(item);
        work(20000);
    } catch (const std::runtime_error &) {
        sink++;
    }
}

static void counter(int first)
{
    for (int item = first; item < first + 12; item++)
        sell(item);
    depth(9);
}

int main()
{
    std::vector<std::thread> counters;
    for (int i = 0; i < 3; i++)
        counters.emplace_back(counter, i * 100);
    for (auto &thread : counters)
        thread.join();
    pid_t child = fork();
    if (child == 0) {
        counter(7);
        _exit(3);
    }
    int status;
    waitpid(child, &status, 0);
    std::printf("%d\n", WEXITSTATUS(status));
}
