/* gettimeofday as in an enclave that has to leave for it: linked into a program, it takes CLOCK_COST_NS nanoseconds more than it does
 * (without the variable none). Its own waiting makes no events. */
#include <stdlib.h>
#include <sys/time.h>
#include <time.h>

#define PLAIN __attribute__((no_instrument_function))

namespace {

PLAIN long cost_ns() {
  const char *cost = getenv("CLOCK_COST_NS");
  return cost ? atol(cost) : 0;
}

PLAIN long now_ns(clockid_t clock, timespec *now) {
  clock_gettime(clock, now);
  return now->tv_sec * 1000000000L + now->tv_nsec;
}

}  // namespace

extern "C" PLAIN int gettimeofday(timeval *out, void *) noexcept {
  static const long cost = cost_ns();
  timespec now;
  if (cost > 0) {
    const long end = now_ns(CLOCK_MONOTONIC, &now) + cost;
    while (now_ns(CLOCK_MONOTONIC, &now) < end) {
    }
  }
  now_ns(CLOCK_REALTIME, &now);
  out->tv_sec = now.tv_sec;
  out->tv_usec = now.tv_nsec / 1000;
  return 0;
}
