// For seeds of the target gmon: calls, a cycle, a recursion, and a function that most time is in.
volatile unsigned long sink;

__attribute__((noinline)) static void work(int n) { for (int i = 0; i < n; i++) sink = sink * 3 + i; }
__attribute__((noinline)) int odd(int n);
__attribute__((noinline)) int even(int n) { work(1000); return n == 0 ? 1 : 1 & odd(n - 1); }
__attribute__((noinline)) int odd(int n) { work(2000); return n == 0 ? 0 : 1 & even(n - 1); }
__attribute__((noinline)) int product(int n) { return n < 2 ? 1 : n * product(n - 1); }

int main(void) {
    int sum = 0;
    for (int i = 0; i < 300; i++) sum += even(11) + product(5);
    work(2000000);
    return sum != 300 * (0 + 120);
}
