#include <pthread.h>
#include <setjmp.h>
#include <stdio.h>
static jmp_buf place;
static int fib(int n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }
static void deeper(int n) { if (n == 0) longjmp(place, 1); deeper(n - 1); }
static void leaping(void) { if (setjmp(place) == 0) deeper(5); }
static void *work(void *given) { leaping(); return (void *)(long)fib(*(int *)given); }
int main(void) {
    pthread_t thread;
    int n = 6;
    pthread_create(&thread, 0, work, &n);
    for (int i = 0; i < 10; i++) leaping();
    printf("%d\n", fib(8));
    pthread_join(thread, 0);
    return 0;
}
