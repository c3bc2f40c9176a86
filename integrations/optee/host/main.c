/* The applications' client: invokes one of the demo's commands, as `optee-demo MODE [NUMBER]`, and prints a line
 * for each answer: what was asked, the result, who gave it, and values. The mode `squeeze` is for the application
 * with a library; `optee-demo rust MODE [NUMBER]` asks the one in Rust what it has of the demo's. Exits with 0
 * whatever the answer is, and with 1 when there was nobody to ask. */
#define _GNU_SOURCE
#include <callee_ta.h>
#include <demo_ta.h>
#include <liar_ta.h>
#include <library_ta.h>
#include <pthread.h>
#include <rust_ta.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tee_client_api.h>
#include <time.h>
#include <unistd.h>

static TEEC_Context context;
static TEEC_Session session;
/* The one that is asked. */
static TEEC_Session *current = &session;

static const TEEC_UUID demo = DEMO_TA_UUID;
static const TEEC_UUID liar = LIAR_TA_UUID;
static const TEEC_UUID library = LIBRARY_TA_UUID;
static const TEEC_UUID rust = RUST_TA_UUID;
/* The application that sessions are opened with. */
static const TEEC_UUID *application = &demo;

static void open_session(void)
{
    uint32_t origin = 0;
    TEEC_Result result = TEEC_OpenSession(&context, &session, application, TEEC_LOGIN_PUBLIC, NULL, NULL, &origin);
    if (result != TEEC_SUCCESS) {
        printf("session result=0x%08x origin=%u\n", result, origin);
        exit(1);
    }
}

static void tell(const char *asked, TEEC_Result result, uint32_t origin)
{
    printf("%s result=0x%08x origin=%u", asked, result, origin);
}

/* A command that takes a value and gives two. */
static TEEC_Result of_value(const char *asked, uint32_t command, uint32_t number)
{
    TEEC_Operation operation = { 0 };
    uint32_t origin = 0;
    operation.paramTypes = TEEC_PARAM_TYPES(TEEC_VALUE_INOUT, TEEC_NONE, TEEC_NONE, TEEC_NONE);
    operation.params[0].value.a = number;
    TEEC_Result result = TEEC_InvokeCommand(current, command, &operation, &origin);
    tell(asked, result, origin);
    printf(" a=%u b=%u\n", operation.params[0].value.a, operation.params[0].value.b);
    return result;
}

static void calls(uint32_t number)
{
    of_value("calls", DEMO_CMD_CALLS, number);
}

static void compute(uint32_t number)
{
    of_value("compute", DEMO_CMD_COMPUTE, number);
}

static void leaps(uint32_t number)
{
    of_value("leaps", DEMO_CMD_LEAPS, number);
}

static void nested(uint32_t number)
{
    of_value("nested", DEMO_CMD_NESTED, number);
}

static void squeeze(uint32_t number)
{
    of_value("squeeze", LIBRARY_CMD_SQUEEZE, number);
}

static void unknown(uint32_t number)
{
    of_value("unknown", UINT32_MAX, number);
}

/* The application is gone with its panic; another session gets a new one. */
static void panics(uint32_t number)
{
    of_value("panic", DEMO_CMD_PANIC, number);
    of_value("panicked", DEMO_CMD_CALLS, number);
    TEEC_CloseSession(&session);
    open_session();
    of_value("anew", DEMO_CMD_CALLS, number);
}

/* Likewise, ended by OP-TEE behind a call. */
static void crash(uint32_t number)
{
    of_value("before", DEMO_CMD_CALLS, number);
    of_value("crash", DEMO_CMD_CRASH, number);
    TEEC_CloseSession(&session);
    open_session();
    of_value("anew", DEMO_CMD_CALLS, number);
}

static void sessions(uint32_t number)
{
    for (uint32_t i = 0; i < number; i++) {
        TEEC_CloseSession(&session);
        open_session();
    }
    of_value("sessions", DEMO_CMD_CALLS, number);
}

/* Calls that have little to do, one at once behind the other. */
static void often(uint32_t number)
{
    TEEC_Result result = TEEC_SUCCESS;
    uint32_t made = 0;
    uint32_t origin = 0;

    for (; made < number && result == TEEC_SUCCESS; made++) {
        TEEC_Operation operation = { 0 };
        operation.paramTypes = TEEC_PARAM_TYPES(TEEC_VALUE_INOUT, TEEC_NONE, TEEC_NONE, TEEC_NONE);
        operation.params[0].value.a = 1;
        result = TEEC_InvokeCommand(&session, DEMO_CMD_CALLS, &operation, &origin);
    }
    tell("often", result, origin);
    printf(" calls=%u\n", made);
}

/* Calls until somebody ends it; each answer is told before the next call. */
static void endless(uint32_t number)
{
    for (;;) {
        of_value("endless", DEMO_CMD_CALLS, number);
        fflush(stdout);
    }
}

/* Calls once, and stays with its session open until somebody ends it. */
static void linger(uint32_t number)
{
    of_value("linger", DEMO_CMD_CALLS, number);
    fflush(stdout);
    for (;;)
        pause();
}

/* One parameter of each kind that is not a value alone. */
static void params(uint32_t number)
{
    char text[] = "normal world";
    char reversed[sizeof text] = { 0 };
    TEEC_Operation operation = { 0 };
    uint32_t origin = 0;
    operation.paramTypes = TEEC_PARAM_TYPES(TEEC_VALUE_INOUT, TEEC_MEMREF_TEMP_INPUT,
                                            TEEC_MEMREF_TEMP_OUTPUT, TEEC_VALUE_OUTPUT);
    operation.params[0].value.a = number;
    operation.params[0].value.b = number + 1;
    operation.params[1].tmpref.buffer = text;
    operation.params[1].tmpref.size = strlen(text);
    operation.params[2].tmpref.buffer = reversed;
    operation.params[2].tmpref.size = strlen(text);
    TEEC_Result result = TEEC_InvokeCommand(&session, DEMO_CMD_PARAMS, &operation, &origin);
    tell("params", result, origin);
    printf(" a=%u b=%u size=%zu sum=%u length=%u text=%s\n", operation.params[0].value.a,
           operation.params[0].value.b, operation.params[2].tmpref.size, operation.params[3].value.a,
           operation.params[3].value.b, reversed);

    operation.params[2].tmpref.size = 1;
    result = TEEC_InvokeCommand(&session, DEMO_CMD_PARAMS, &operation, &origin);
    tell("short", result, origin);
    printf(" size=%zu\n", operation.params[2].tmpref.size);
}

/* Calls with four parameters, and one with one behind them. */
static void slots(uint32_t number)
{
    for (uint32_t i = 0; i < number; i++)
        params(i);
    calls(number);
}

/* The application calls another one, and then its client does. */
static void both(uint32_t number)
{
    TEEC_UUID uuid = CALLEE_TA_UUID;
    TEEC_Session callee;
    uint32_t origin = 0;
    TEEC_Result result = TEEC_OpenSession(&context, &callee, &uuid, TEEC_LOGIN_PUBLIC, NULL, NULL, &origin);
    nested(number);
    if (result == TEEC_SUCCESS) {
        current = &callee;
        of_value("callee", CALLEE_CMD_DOUBLE, number);
        current = &session;
        TEEC_CloseSession(&callee);
    }
}

static uint32_t expected(uint32_t rounds)
{
    uint32_t sum = 0;
    for (uint32_t i = 0; i < rounds; i++)
        for (uint32_t j = i; j < i + 3; j++)
            for (uint32_t k = j; k < j + 5; k++)
                sum += 3 * k + 1;
    return sum;
}

/* Calls for so many seconds, of which every answer has to be right; on a new session each hundred times. What is
 * refused as it is when there is a parameter too many is counted apart. */
static void hammer(uint32_t seconds)
{
    uint32_t origin = 0, right = 0, refused = 0, wrong = 0;
    for (time_t end = time(NULL) + seconds; time(NULL) < end;) {
        uint32_t rounds = 1 + (right + refused) % 50;
        TEEC_Operation operation = { 0 };
        operation.paramTypes = TEEC_PARAM_TYPES(TEEC_VALUE_INOUT, TEEC_NONE, TEEC_NONE, TEEC_NONE);
        operation.params[0].value.a = rounds;
        TEEC_Result result = TEEC_InvokeCommand(&session, DEMO_CMD_CALLS, &operation, &origin);
        if (result == TEEC_SUCCESS && operation.params[0].value.a == expected(rounds)) {
            right++;
        } else if (result == TEEC_ERROR_BAD_PARAMETERS && origin == TEEC_ORIGIN_TRUSTED_APP) {
            refused++;
        } else {
            wrong++;
            tell("wrong", result, origin);
            printf(" a=%u rounds=%u\n", operation.params[0].value.a, rounds);
        }
        if ((right + refused + wrong) % 100 == 0) {
            TEEC_CloseSession(&session);
            open_session();
        }
    }
    printf("hammer right=%u refused=%u wrong=%u\n", right, refused, wrong);
}

/* Has the liar lie for so many seconds. */
static void lies(uint32_t seconds)
{
    uint32_t origin = 0, answers = 0;
    TEEC_Result result = TEEC_SUCCESS;
    for (time_t end = time(NULL) + seconds; result == TEEC_SUCCESS && time(NULL) < end; answers++)
        result = TEEC_InvokeCommand(&session, answers % 5, NULL, &origin);
    tell("lies", result, origin);
    printf(" calls=%u\n", answers);
}

/* What the application has summed of so many calls, piece by piece into a file. */
static void take(uint32_t number)
{
    static unsigned char piece[256];
    FILE *file = fopen("taken", "wb");
    uint32_t origin = 0, pieces = 0;
    TEEC_Result result = TEEC_SUCCESS;
    calls(number);
    for (size_t size = 1; file && result == TEEC_SUCCESS && size > 0; pieces++) {
        TEEC_Operation operation = { 0 };
        operation.paramTypes = TEEC_PARAM_TYPES(TEEC_MEMREF_TEMP_OUTPUT, TEEC_NONE, TEEC_NONE, TEEC_NONE);
        operation.params[0].tmpref.buffer = piece;
        operation.params[0].tmpref.size = sizeof piece;
        result = TEEC_InvokeCommand(&session, DEMO_CMD_TAKE, &operation, &origin);
        size = operation.params[0].tmpref.size;
        if (result == TEEC_SUCCESS)
            fwrite(piece, 1, size, file);
    }
    if (file)
        fclose(file);
    tell("take", result, origin);
    printf(" calls=%u\n", pieces);
}

static TEEC_Operation cancelled;
static atomic_int is_over;

/* A processor takes no timers of Linux while it runs the application: who sleeps there sleeps on. Where there is no such
 * processor, nothing changes. */
static void stay_on(int processor)
{
    cpu_set_t only;
    CPU_ZERO(&only);
    CPU_SET(processor, &only);
    (void)sched_setaffinity(0, sizeof only, &only);
}

static void *until_cancelled(void *unused)
{
    (void)unused;
    stay_on(0);
    uint32_t origin = 0;
    cancelled.paramTypes = TEEC_PARAM_TYPES(TEEC_NONE, TEEC_NONE, TEEC_NONE, TEEC_NONE);
    TEEC_Result result = TEEC_InvokeCommand(&session, DEMO_CMD_UNTIL_CANCELLED, &cancelled, &origin);
    tell("cancel", result, origin);
    printf("\n");
    is_over = 1;
    return NULL;
}

static void cancel(uint32_t milliseconds)
{
    pthread_t thread;
    if (pthread_create(&thread, NULL, until_cancelled, NULL) != 0) {
        printf("there is no thread to be had\n");
        exit(1);
    }
    stay_on(1);
    /* Nobody hears a request before the call has begun. */
    do {
        usleep(milliseconds * 1000);
        TEEC_RequestCancellation(&cancelled);
    } while (!is_over);
    pthread_join(thread, NULL);
}

static const struct {
    const char *name;
    void (*run)(uint32_t number);
    const TEEC_UUID *application;
} modes[] = {
    { "calls", calls, &demo },   { "compute", compute, &demo },   { "nested", nested, &demo },
    { "unknown", unknown, &demo }, { "panic", panics, &demo },    { "sessions", sessions, &demo },
    { "params", params, &demo }, { "cancel", cancel, &demo },     { "slots", slots, &demo },
    { "both", both, &demo },     { "hammer", hammer, &demo },     { "leaps", leaps, &demo },
    { "squeeze", squeeze, &library }, { "take", take, &demo },    { "endless", endless, &demo },
    { "often", often, &demo },     { "linger", linger, &demo }, { "crash", crash, &demo },       { "lies", lies, &liar },
};

int main(int count, char **words)
{
    int is_rust = count > 1 && strcmp(words[1], "rust") == 0;
    count -= is_rust;
    words += is_rust;
    const char *mode = count > 1 ? words[1] : "";
    uint32_t number = count > 2 ? strtoul(words[2], NULL, 0) : 1;
    for (size_t i = 0; i < sizeof modes / sizeof *modes; i++) {
        if (strcmp(modes[i].name, mode) != 0)
            continue;
        application = is_rust ? &rust : modes[i].application;
        TEEC_Result result = TEEC_InitializeContext(NULL, &context);
        if (result != TEEC_SUCCESS) {
            printf("context result=0x%08x\n", result);
            return 1;
        }
        open_session();
        modes[i].run(number);
        TEEC_CloseSession(&session);
        TEEC_FinalizeContext(&context);
        return 0;
    }
    fprintf(stderr, "optee-demo [rust] MODE [NUMBER]; modes are:");
    for (size_t i = 0; i < sizeof modes / sizeof *modes; i++)
        fprintf(stderr, " %s", modes[i].name);
    fprintf(stderr, "\n");
    return 2;
}
