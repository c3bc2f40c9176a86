/* An interpreter whose handlers go on to each other, functions that call themselves and each other last, and others that
   only look alike. */
#include <stdio.h>

#define OWN __attribute__((noinline))
typedef long (*handler)(const unsigned char *code, long value, long left);

static long op_add(const unsigned char *, long, long);
static long op_xor(const unsigned char *, long, long);
static long op_loop(const unsigned char *, long, long);
static const handler handlers[] = {op_add, op_xor, op_loop};

OWN HANDLERS static long go_on(const unsigned char *code, long value, long left) {
  return handlers[*code](code, value, left);
}
OWN HANDLERS static long op_add(const unsigned char *code, long value, long left) { return go_on(code + 1, value + 3, left); }
OWN HANDLERS static long op_xor(const unsigned char *code, long value, long left) {
  return handlers[code[1]](code + 1, value ^ 0x55, left);
}
OWN HANDLERS static long op_loop(const unsigned char *code, long value, long left) {
  return left == 0 ? value : handlers[0](code - 2, value, left - 1);
}

OWN SELVES long count(long n, long sum) { return n ? count(n - 1, sum ^ n) : sum; }
OWN SELVES int even(long n);
OWN SELVES int odd(long n) { return n == 0 ? 0 : even(n - 1); }
OWN SELVES int even(long n) { return n == 0 ? 1 : odd(n - 1); }
OWN SELVES double fold(double x, long n) { return n ? fold(x * 0.5, n - 1) : x; }
OWN SELVES void walk(long n) {
  if (n)
    walk(n - 1);
}

/* No jump is made of these, or they lead to nothing that leads back. */
OWN long not_last(long n) { return n ? 1 + not_last(n - 1) : 0; }
OWN long lends(long *other, long n) {
  long here = n + *other;
  return n ? lends(&here, n - 1) : *other;
}
OWN long calls_another(long n) { return not_last(n + 1); }
struct reader {
  long (*read)(const struct reader *, long);
};
OWN static long plain_read(const struct reader *reader, long n) { return n + (reader == 0); }
static const struct reader plain = {plain_read};
OWN long delegates(const struct reader *reader, long n) { return reader->read(reader, n + 1); }

int main(int argc, char **argv) {
  (void)argv;
  static const unsigned char code[] = {0, 1, 2};
  long n = argc > 1 ? 3000000 : 10, first = 1;
  printf("%ld %ld %d %g\n", go_on(code, 0, n), count(n, 0), even(n), fold(1, n));
  walk(n);
  return not_last(3) + lends(&first, 3) + calls_another(3) + delegates(&plain, 3) == 0;
}
