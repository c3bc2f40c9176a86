/* A client that asks for everything that the API lets it ask for: `asks strict` or `asks plain` MODE, or many times for the same:
 * `asks strict many TIMES`. It prints all that it can
 * see of it, which is the same whether it is recorded or not; and last how often it has called (see told.rs). */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <strict_ta.h>
#include <tee_client_api.h>

#define BYTES 100

static const TEEC_UUID strict = STRICT_TA_UUID;
static const TEEC_UUID plain = PLAIN_TA_UUID;
static const TEEC_UUID *application = &strict;
static unsigned opened, invoked;

static TEEC_Result open_with(TEEC_Context *context, TEEC_Session *session, TEEC_Operation *operation, uint32_t *origin)
{
    __atomic_add_fetch(&opened, 1, __ATOMIC_RELAXED);
    return TEEC_OpenSession(context, session, application, TEEC_LOGIN_PUBLIC, NULL, operation, origin);
}

static void begin(TEEC_Context *context, TEEC_Session *session)
{
    TEEC_Result result;

    TEEC_InitializeContext(NULL, context);
    result = open_with(context, session, NULL, NULL);
    if (result != TEEC_SUCCESS) {
        printf("session result=%x\n", result);
        exit(1);
    }
}

static void end(TEEC_Context *context, TEEC_Session *session)
{
    TEEC_CloseSession(session);
    TEEC_FinalizeContext(context);
}

static TEEC_Result invoke(TEEC_Session *session, uint32_t command, TEEC_Operation *operation, uint32_t *origin)
{
    __atomic_add_fetch(&invoked, 1, __ATOMIC_RELAXED);
    return TEEC_InvokeCommand(session, command, operation, origin);
}

/* What an operation is behind a call, to its last byte. */
static void show(const char *what, const TEEC_Operation *operation, TEEC_Result result, uint32_t origin)
{
    int slot;

    printf("%s result=%x origin=%u started=%x types=%x", what, result, origin, operation->started,
           operation->paramTypes);
    for (slot = 0; slot < 4; slot++) {
        uint32_t type = TEEC_PARAM_TYPE_GET(operation->paramTypes, slot);
        const TEEC_Parameter *is = &operation->params[slot];

        if (type >= TEEC_MEMREF_WHOLE)
            printf(" %zu+%zu of %zu", is->memref.offset, is->memref.size, is->memref.parent->size);
        else if (type >= TEEC_MEMREF_TEMP_INPUT)
            printf(" %zu", is->tmpref.size);
        else
            /* Of a slot that is free nobody looks at these. */
            printf(" %x,%x", is->value.a, is->value.b);
    }
    printf("\n");
}

/* Parameters of every kind in every set of slots, the last of which are those of the call before. */
static void slots(TEEC_Context *context, TEEC_Session *session)
{
    static const uint32_t kinds[] = {
        TEEC_VALUE_INPUT,          TEEC_VALUE_OUTPUT,         TEEC_VALUE_INOUT,
        TEEC_MEMREF_TEMP_INPUT,    TEEC_MEMREF_TEMP_OUTPUT,   TEEC_MEMREF_TEMP_INOUT,
        TEEC_MEMREF_WHOLE,         TEEC_MEMREF_PARTIAL_INPUT, TEEC_MEMREF_PARTIAL_OUTPUT,
        TEEC_MEMREF_PARTIAL_INOUT,
    };
    enum { KINDS = sizeof kinds / sizeof *kinds };
    TEEC_SharedMemory allocated = { .size = 3 * BYTES, .flags = TEEC_MEM_INPUT | TEEC_MEM_OUTPUT };
    unsigned char bytes[4][BYTES];
    unsigned char memory[5000];
    TEEC_SharedMemory registered = {
        .buffer = memory, .size = sizeof memory, .flags = TEEC_MEM_INPUT | TEEC_MEM_OUTPUT
    };
    uint32_t mask, kind, slot, origin = 77;

    memset(memory, 9, sizeof memory);
    TEEC_AllocateSharedMemory(context, &allocated);
    memset(allocated.buffer, 8, allocated.size);
    TEEC_RegisterSharedMemory(context, &registered);
    for (mask = 0; mask < 16; mask++)
        for (kind = 0; kind < KINDS; kind++) {
            TEEC_Operation operation;
            TEEC_Result result;

            memset(&operation, 0x5A, sizeof operation);
            memset(bytes, 7, sizeof bytes);
            operation.paramTypes = 0;
            for (slot = 0; slot < 4; slot++) {
                uint32_t type = mask >> slot & 1 ? kinds[(kind + slot) % KINDS] : TEEC_NONE;

                operation.paramTypes |= type << 4 * slot;
                if (type >= TEEC_MEMREF_WHOLE)
                    operation.params[slot].memref = (TEEC_RegisteredMemoryReference){
                        kind & 1 ? &registered : &allocated, BYTES, BYTES
                    };
                else if (type >= TEEC_MEMREF_TEMP_INPUT)
                    operation.params[slot].tmpref = (TEEC_TempMemoryReference){ bytes[slot], BYTES - slot };
            }
            result = invoke(session, mask * 3 + kind, &operation, &origin);
            show("first", &operation, result, origin);
            /* Once more, as it is. */
            result = invoke(session, 0xFFFF0000 + mask, &operation, NULL);
            show("again", &operation, result, origin);
            for (slot = 0; slot < 4; slot++)
                printf("%d %d ", bytes[slot][0], bytes[slot][BYTES - 1]);
            printf("%d %d\n", memory[BYTES], ((unsigned char *)allocated.buffer)[BYTES]);
        }
    TEEC_ReleaseSharedMemory(&registered);
    TEEC_ReleaseSharedMemory(&allocated);
}

/* A call that is cancelled before it has begun, and one behind it. */
static void cancelled(TEEC_Context *context, TEEC_Session *session)
{
    TEEC_Operation operation = { 0 };
    int time;

    (void)context;
    for (time = 0; time < 2; time++) {
        uint32_t origin = 77;
        TEEC_Result result = invoke(session, 2, &operation, &origin);

        show("first", &operation, result, origin);
        TEEC_RequestCancellation(&operation);
        result = invoke(session, 4, &operation, &origin);
        show("cancelled", &operation, result, origin);
        result = invoke(session, 6, &operation, &origin);
        show("behind", &operation, result, origin);
    }
}

/* What is seldom asked, and what is refused. */
static void edges(TEEC_Context *context, TEEC_Session *session)
{
    TEEC_SharedMemory memory = { .size = BYTES, .flags = TEEC_MEM_INPUT };
    TEEC_Operation operation = { .started = 0xABCD };
    TEEC_Session second;
    uint32_t origin = 77;
    TEEC_Result result;
    int pipes[2], there = -1;

    result = invoke(session, 0, NULL, NULL);
    printf("nothing result=%x\n", result);
    result = invoke(session, 0xFFFF3025, NULL, &origin);
    printf("nothing result=%x origin=%u\n", result, origin);
    operation.paramTypes = TEEC_PARAM_TYPES(TEEC_MEMREF_TEMP_INOUT, TEEC_NONE, TEEC_NONE, TEEC_NONE);
    result = invoke(session, 2, &operation, &origin);
    show("empty", &operation, result, origin);
    /* Types that there are not, and memory that is shared for one way alone, and more than there is of it. */
    TEEC_AllocateSharedMemory(context, &memory);
    operation.paramTypes = TEEC_PARAM_TYPES(TEEC_VALUE_INPUT, TEEC_NONE, 0xA, TEEC_NONE);
    result = invoke(session, 4, &operation, &origin);
    show("unknown", &operation, result, origin);
    operation.paramTypes = TEEC_PARAM_TYPES(TEEC_MEMREF_PARTIAL_INOUT, TEEC_NONE, TEEC_NONE, TEEC_NONE);
    operation.params[0].memref = (TEEC_RegisteredMemoryReference){ &memory, BYTES, 0 };
    result = invoke(session, 6, &operation, &origin);
    show("one way", &operation, result, origin);
    memset(&operation, 0, sizeof operation);
    operation.paramTypes = TEEC_PARAM_TYPES(TEEC_NONE, TEEC_NONE, TEEC_NONE, TEEC_MEMREF_PARTIAL_INPUT);
    operation.params[3].memref = (TEEC_RegisteredMemoryReference){ &memory, BYTES, 1 };
    result = invoke(session, 8, &operation, &origin);
    show("too long", &operation, result, origin);
    TEEC_ReleaseSharedMemory(&memory);
    /* Behind each of these the session goes on. */
    memset(&operation, 0, sizeof operation);
    result = invoke(session, 10, &operation, &origin);
    show("goes on", &operation, result, origin);
    TEEC_CloseSession(NULL);
    application = &(const TEEC_UUID){ 1, 2, 3, { 4 } };
    result = open_with(context, &second, NULL, &origin);
    printf("nobody result=%x origin=%u\n", result, origin);
    /* Calls of ioctl that are not about a TEE. */
    if (pipe(pipes) == 0 && write(pipes[1], "four", 4) == 4)
        result = ioctl(pipes[0], FIONREAD, &there);
    printf("ioctl result=%x there=%d\n", result, there);
    errno = 0;
    there = ioctl(-1, FIONREAD, &there);
    printf("ioctl result=%d %s\n", there, strerror(errno));
}

/* Sessions that are greeted, with memory that is long enough and with memory that is not: what lies behind it is nobody's. */
static void greetings(void)
{
    TEEC_Context context;
    size_t size;

    TEEC_InitializeContext(NULL, &context);
    for (size = 0; size <= BYTES; size += STRICT_GREETING / 2) {
        unsigned char bytes[BYTES + 1] = { 0 };
        TEEC_Operation operation = { 0 };
        TEEC_Session greeted;
        uint32_t origin = 77, at = 0;
        TEEC_Result result;

        operation.paramTypes = TEEC_PARAM_TYPES(TEEC_VALUE_INOUT, TEEC_MEMREF_TEMP_OUTPUT, TEEC_NONE, TEEC_NONE);
        operation.params[0].value.a = 5;
        operation.params[1].tmpref = (TEEC_TempMemoryReference){ bytes, size };
        result = open_with(&context, &greeted, &operation, &origin);
        show("greeted", &operation, result, origin);
        while (at < sizeof bytes && bytes[at] == '!')
            at++;
        printf("of %zu: %u\n", size, at);
        if (result == TEEC_SUCCESS) {
            result = invoke(&greeted, 0, NULL, &origin);
            printf("and then result=%x origin=%u\n", result, origin);
            TEEC_CloseSession(&greeted);
        }
    }
    TEEC_FinalizeContext(&context);
}

/* A session with an application that is not there yet, and again when it is. */
static void late(void)
{
    char *folder = strdup(getenv("TEE_APPLICATIONS"));
    TEEC_Context context;
    TEEC_Session session;
    TEEC_Result result;

    TEEC_InitializeContext(NULL, &context);
    setenv("TEE_APPLICATIONS", "/nowhere", 1);
    result = open_with(&context, &session, NULL, NULL);
    printf("too early result=%x\n", result);
    setenv("TEE_APPLICATIONS", folder, 1);
    result = open_with(&context, &session, NULL, NULL);
    printf("later result=%x\n", result);
    printf("and then result=%x\n", invoke(&session, 2, NULL, NULL));
    end(&context, &session);
    free(folder);
}

/* One place for sessions of both applications in turn, in contexts that come and go. */
static void turns(TEEC_Context *context, TEEC_Session *session)
{
    TEEC_Session place;
    uint32_t origin = 77;
    int turn;

    (void)context;
    for (turn = 0; turn < 12; turn++) {
        TEEC_Operation operation = { .paramTypes = TEEC_PARAM_TYPES(TEEC_VALUE_INOUT, TEEC_NONE, TEEC_NONE, TEEC_NONE) };
        TEEC_Context here;
        TEEC_Result result;

        application = turn % 3 == 1 ? &plain : &strict;
        begin(&here, &place);
        operation.params[0].value.a = turn;
        result = invoke(&place, 2 * turn, &operation, &origin);
        show("turn", &operation, result, origin);
        TEEC_CloseSession(&place);
        /* Some forget that. */
        if (turn % 2 == 0)
            TEEC_FinalizeContext(&here);
        result = invoke(session, 2 * turn, &operation, &origin);
        show("other", &operation, result, origin);
    }
}

#define THREADS 6
#define CALLS 150

struct asking {
    pthread_t thread;
    TEEC_Session *shared;
    uint32_t number, sum;
};

static void *asks(void *at)
{
    struct asking *this = at;
    TEEC_Context context;
    TEEC_Session own;
    uint32_t i;

    begin(&context, &own);
    for (i = 0; i < CALLS; i++) {
        TEEC_Operation operation = { .paramTypes = TEEC_PARAM_TYPES(TEEC_VALUE_INOUT, TEEC_NONE, TEEC_NONE, TEEC_NONE) };
        uint32_t origin = 0;

        operation.params[0].value.a = i;
        if (invoke(i % 2 ? this->shared : &own, 2 * this->number, &operation, &origin) == TEEC_SUCCESS &&
            origin == TEEC_ORIGIN_TRUSTED_APP && operation.params[0].value.b == 20)
            this->sum += operation.params[0].value.a - i;
    }
    end(&context, &own);
    return NULL;
}

/* Threads with contexts and sessions of their own, and one that all have; three times, so that the later ones have what the
 * earlier ones had. */
static void threads(TEEC_Context *context, TEEC_Session *session)
{
    int time, i;

    (void)context;
    for (time = 0; time < 3; time++) {
        struct asking all[THREADS] = { 0 };

        for (i = 0; i < THREADS; i++) {
            all[i].number = i;
            all[i].shared = session;
            pthread_create(&all[i].thread, NULL, asks, &all[i]);
        }
        for (i = 0; i < THREADS; i++) {
            pthread_join(all[i].thread, NULL);
            printf("thread %d: %u\n", i, all[i].sum);
        }
    }
}

/* The child of a process that has called asks as well, in sessions of its parent's and of its own. */
static void forks(TEEC_Context *context, TEEC_Session *session)
{
    TEEC_Context inner;
    TEEC_Session own;
    int status = 0;
    pid_t child;

    (void)context;
    printf("before result=%x\n", invoke(session, 2, NULL, NULL));
    fflush(stdout);
    child = fork();
    if (child == 0) {
        printf("child result=%x\n", invoke(session, 4, NULL, NULL));
        begin(&inner, &own);
        printf("its own result=%x\n", invoke(&own, 6, NULL, NULL));
        TEEC_CloseSession(&own);
        fflush(stdout);
        _exit(0);
    }
    waitpid(child, &status, 0);
    printf("behind result=%x status=%d\n", invoke(session, 8, NULL, NULL), status);
    opened += 1;
    invoked += 2;
}

static unsigned times;

/* The same again and again. */
static void many(TEEC_Context *context, TEEC_Session *session)
{
    unsigned i, refused = 0;

    (void)context;
    for (i = 0; i < times; i++)
        refused += invoke(session, 2, NULL, NULL) != TEEC_SUCCESS;
    printf("refused %u\n", refused);
    /* So that the recorder has freed memory for what is handed over last. */
    usleep(100000);
}

static const struct {
    const char *name;
    void (*run)(TEEC_Context *context, TEEC_Session *session);
} modes[] = {
    { "slots", slots }, { "edges", edges }, { "cancelled", cancelled }, { "turns", turns }, { "threads", threads },
    { "forks", forks }, { "many", many },
};

int main(int count, char **words)
{
    TEEC_Context context;
    TEEC_Session session;
    size_t i;

    if (count < 3)
        return 2;
    if (strcmp(words[1], "plain") == 0)
        application = &plain;
    if (count > 3)
        times = strtoul(words[3], NULL, 10);
    for (i = 0; i < sizeof modes / sizeof *modes; i++)
        if (strcmp(modes[i].name, words[2]) == 0) {
            begin(&context, &session);
            modes[i].run(&context, &session);
            /* With free slots: what was summed meanwhile is handed over with it. */
            printf("last result=%x\n", invoke(&session, 0, NULL, NULL));
            end(&context, &session);
        }
    if (strcmp(words[2], "greetings") == 0)
        greetings();
    if (strcmp(words[2], "late") == 0)
        late();
    printf("calls TEEC_OpenSession %u\ncalls TEEC_InvokeCommand %u\n", opened, invoked);
    return 0;
}
