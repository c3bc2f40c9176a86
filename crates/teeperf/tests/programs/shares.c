/* Functions that work for unlike shares of the time, in one call a round or in many.
 *
 *   shares ROUNDS    some 0.7 ms each; how long a round takes varies, so that nothing that
 *                    samples at a steady rate meets the same function always
 */
#include "graph.h"
#include <stdlib.h>

volatile unsigned long sink;

/* Each link waits for the one before: a steady time. */
#define FUNCTION(name) \
    KEPT void name(int links) { \
        unsigned long value = sink; \
        for (int i = 0; i < links; i++) { \
            value *= 2891336453u; \
            __asm__ volatile("" : "+r"(value)); \
        } \
        sink = value; \
    }
FUNCTION(forty)
FUNCTION(thirty)
FUNCTION(fifteen)
FUNCTION(ten)
FUNCTION(five)

int main(int argc, char **argv) {
    int rounds = argc > 1 ? atoi(argv[1]) : 1;
    unsigned long random = 1;
    for (int i = 0; i < rounds; i++) {
        random = random * 6364136223846793005u + 1442695040888963407u;
        int unit = 1000 + (int)(random >> 54);
        forty(200 * unit);
        for (int n = 0; n < 30; n++) thirty(5 * unit);
        fifteen(75 * unit);
        ten(50 * unit);
        for (int n = 0; n < 5; n++) five(5 * unit);
    }
    return 0;
}
