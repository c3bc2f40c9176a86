/* Client library and TEE in one, in the client's own process: trusted applications are shared libraries, `UUID.elf` in the
 * folder that TEE_APPLICATIONS names. What is as it is on a board:
 *
 * - Shared memory lies at another address in each call of an application, and nowhere behind it: who touches it then
 *   ends with SIGSEGV. (Memory that is not shared stays where it is.)
 * - Applications with TA_FLAG_SINGLE_INSTANCE have one instance, others one for each session, with data of its own. An instance is
 *   entered by one thread at a time; one that panics is dead for all its sessions.
 * - Parameters are taken and given back as OP-TEE's client library does it. Shared memory is known to the context that it
 *   was registered with, and to no other.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <tee_client_api.h>
#include <tee_internal_api.h>
#include <tee_internal_api_extensions.h>

#define SLOTS 4
#define SESSIONS 64
#define CONTEXTS 256
#define PAGE 4096

struct instance {
    TEEC_UUID uuid;
    /* Kept open: the loader knows libraries by name. */
    int file;
    void *library;
    uint32_t flags;
    unsigned sessions;
    bool is_dead;
    pthread_mutex_t busy;
    TEE_Result (*create)(void);
    void (*destroy)(void);
    TEE_Result (*open)(uint32_t types, TEE_Param params[4], void **session);
    void (*close)(void *session);
    TEE_Result (*invoke)(void *session, uint32_t command, uint32_t types, TEE_Param params[4]);
    struct instance *next;
};

struct session {
    struct instance *instance;
    /* The application's own. */
    void *data;
    bool is_cancelled;
};

/* A thread within an application. */
struct call {
    struct session *session;
    /* What the client lends it. */
    const TEE_Param *params;
    uint32_t types;
    jmp_buf panic;
    struct call *before;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct instance *instances;
static struct session sessions[SESSIONS];
/* Contexts have numbers in place of files; how much shared memory is registered with each. */
static int contexts;
static int registered[CONTEXTS];
static __thread struct call *current;

/* Instances. */

static int copy_of(const TEEC_UUID *uuid)
{
    const char *folder = getenv("TEE_APPLICATIONS");
    const uint8_t *node = uuid->clockSeqAndNode;
    char path[512];
    struct stat about;
    int from, to = -1;

    snprintf(path, sizeof path, "%s/%08x-%04x-%04x-%02x%02x-%02x%02x%02x%02x%02x%02x.elf", folder ? folder : ".",
             uuid->timeLow, uuid->timeMid, uuid->timeHiAndVersion, node[0], node[1], node[2], node[3], node[4],
             node[5], node[6], node[7]);
    from = open(path, O_RDONLY | O_CLOEXEC);
    if (from >= 0 && fstat(from, &about) == 0)
        to = memfd_create("application", MFD_CLOEXEC);
    if (to >= 0 && sendfile(to, from, NULL, about.st_size) != about.st_size) {
        close(to);
        to = -1;
    }
    if (from >= 0)
        close(from);
    return to;
}

static struct instance *load(const TEEC_UUID *uuid)
{
    struct instance *made = calloc(1, sizeof *made);
    char path[64];

    made->uuid = *uuid;
    made->file = copy_of(uuid);
    if (made->file < 0) {
        free(made);
        return NULL;
    }
    snprintf(path, sizeof path, "/proc/self/fd/%d", made->file);
    made->library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!made->library) {
        fprintf(stderr, "libteec: %s\n", dlerror());
        abort();
    }
    pthread_mutex_init(&made->busy, NULL);
    made->flags = *(uint32_t *)dlsym(made->library, "entry_flags");
    made->create = dlsym(made->library, "entry_create");
    made->destroy = dlsym(made->library, "entry_destroy");
    made->open = dlsym(made->library, "entry_open");
    made->close = dlsym(made->library, "entry_close");
    made->invoke = dlsym(made->library, "entry_invoke");
    made->next = instances;
    instances = made;
    return made;
}

/* Under the lock. */
static void leave(struct instance *instance)
{
    struct instance **link = &instances;

    if (--instance->sessions > 0)
        return;
    while (*link != instance)
        link = &(*link)->next;
    *link = instance->next;
    if (!instance->is_dead)
        instance->destroy();
    dlclose(instance->library);
    close(instance->file);
    free(instance);
}

/* Under the lock: the instance that a new session is with, which counts it. */
static struct instance *instance_for(const TEEC_UUID *uuid)
{
    struct instance *instance = instances;

    while (instance && !(memcmp(&instance->uuid, uuid, sizeof *uuid) == 0 && !instance->is_dead &&
                         instance->flags & TA_FLAG_SINGLE_INSTANCE))
        instance = instance->next;
    if (!instance) {
        instance = load(uuid);
        if (!instance)
            return NULL;
        instance->create();
    }
    instance->sessions++;
    return instance;
}

/* Entering them. */

enum entry { OPEN, INVOKE, CLOSE };

static TEE_Result enter(struct session *session, enum entry entry, uint32_t command, uint32_t types, TEE_Param *params,
                        uint32_t *origin)
{
    struct instance *instance = session->instance;
    struct call call = { .session = session, .params = params, .types = types, .before = current };
    volatile TEE_Result result = TEE_SUCCESS;

    *origin = TEEC_ORIGIN_TRUSTED_APP;
    pthread_mutex_lock(&instance->busy);
    if (instance->is_dead) {
        *origin = TEEC_ORIGIN_TEE;
        result = TEE_ERROR_TARGET_DEAD;
    } else if (setjmp(call.panic)) {
        instance->is_dead = true;
        *origin = TEEC_ORIGIN_TEE;
        result = TEE_ERROR_TARGET_DEAD;
    } else {
        current = &call;
        if (entry == OPEN)
            result = instance->open(types, params, &session->data);
        else if (entry == INVOKE)
            result = instance->invoke(session->data, command, types, params);
        else
            instance->close(session->data);
    }
    current = call.before;
    pthread_mutex_unlock(&instance->busy);
    return result;
}

static TEE_Result begin(const TEEC_UUID *uuid, uint32_t types, TEE_Param *params, uint32_t *id, uint32_t *origin)
{
    struct instance *instance;
    TEE_Result result;

    *origin = TEEC_ORIGIN_TEE;
    pthread_mutex_lock(&lock);
    instance = instance_for(uuid);
    for (*id = 1; instance && *id < SESSIONS && sessions[*id].instance;)
        ++*id;
    if (!instance || *id == SESSIONS) {
        pthread_mutex_unlock(&lock);
        return instance ? TEEC_ERROR_OUT_OF_MEMORY : TEE_ERROR_ITEM_NOT_FOUND;
    }
    sessions[*id] = (struct session){ .instance = instance };
    pthread_mutex_unlock(&lock);
    result = enter(&sessions[*id], OPEN, 0, types, params, origin);
    if (result != TEE_SUCCESS) {
        pthread_mutex_lock(&lock);
        leave(instance);
        sessions[*id].instance = NULL;
        pthread_mutex_unlock(&lock);
    }
    return result;
}

static void end(uint32_t id)
{
    uint32_t origin;

    enter(&sessions[id], CLOSE, 0, 0, NULL, &origin);
    pthread_mutex_lock(&lock);
    leave(sessions[id].instance);
    sessions[id].instance = NULL;
    pthread_mutex_unlock(&lock);
}

/* What applications call. */

void TEE_Panic(TEE_Result code)
{
    (void)code;
    longjmp(current->panic, 1);
}

TEE_Result TEE_CheckMemoryAccessRights(uint32_t flags, void *buffer, size_t size)
{
    const char *start = buffer;
    int slot;

    if (!(flags & TEE_MEMORY_ACCESS_NONSECURE))
        return TEE_SUCCESS;
    for (slot = 0; slot < SLOTS; slot++) {
        const TEE_Param *lent = &current->params[slot];

        if (TEE_PARAM_TYPE_GET(current->types, slot) < TEE_PARAM_TYPE_MEMREF_INPUT)
            continue;
        if (start >= (char *)lent->memref.buffer && size <= lent->memref.size &&
            start + size <= (char *)lent->memref.buffer + lent->memref.size)
            return TEE_SUCCESS;
    }
    return TEE_ERROR_ACCESS_DENIED;
}

TEE_Result TEE_Wait(uint32_t milliseconds)
{
    usleep(1000 * milliseconds);
    return TEE_SUCCESS;
}

void TEE_GetSystemTime(TEE_Time *to)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    to->seconds = now.tv_sec;
    to->millis = now.tv_nsec / 1000000;
}

bool TEE_UnmaskCancellation(void)
{
    return true;
}

bool TEE_GetCancellationFlag(void)
{
    return __atomic_load_n(&current->session->is_cancelled, __ATOMIC_RELAXED);
}

TEE_Result TEE_OpenTASession(const TEE_UUID *application, uint32_t timeout, uint32_t types, TEE_Param params[4],
                             TEE_TASessionHandle *session, uint32_t *origin)
{
    uint32_t id;
    TEE_Result result = begin((const TEEC_UUID *)application, types, params, &id, origin);

    (void)timeout;
    *session = result == TEE_SUCCESS ? (TEE_TASessionHandle)(uintptr_t)id : TEE_HANDLE_NULL;
    return result;
}

TEE_Result TEE_InvokeTACommand(TEE_TASessionHandle session, uint32_t timeout, uint32_t command, uint32_t types,
                               TEE_Param params[4], uint32_t *origin)
{
    (void)timeout;
    return enter(&sessions[(uintptr_t)session], INVOKE, command, types, params, origin);
}

void TEE_CloseTASession(TEE_TASessionHandle session)
{
    if (session != TEE_HANDLE_NULL)
        end((uintptr_t)session);
}

/* Parameters on their way there and back. */

struct mapped {
    void *base;
    size_t length;
};

/* The same memory at another address; memory that is not shared stays where it is. */
static void *map_again(void *buffer, size_t size, struct mapped *mapped)
{
    size_t into = (uintptr_t)buffer % PAGE;

    mapped->length = (into + size + PAGE - 1) / PAGE * PAGE;
    mapped->base = mapped->length ? mremap((char *)buffer - into, 0, mapped->length, MREMAP_MAYMOVE) : MAP_FAILED;
    return mapped->base == MAP_FAILED ? buffer : (char *)mapped->base + into;
}

static bool gives(uint32_t type)
{
    return type & TEEC_MEM_OUTPUT;
}

static TEEC_Result take(const TEEC_Context *context, const TEEC_Operation *operation, uint32_t *types,
                        TEE_Param *params, struct mapped *mapped)
{
    int slot;

    *types = 0;
    for (slot = 0; slot < SLOTS; slot++) {
        uint32_t type = TEEC_PARAM_TYPE_GET(operation->paramTypes, slot);
        const TEEC_Parameter *given = &operation->params[slot];
        const TEEC_SharedMemory *parent = given->memref.parent;
        void *copy;

        mapped[slot].base = MAP_FAILED;
        if (type >= TEEC_MEMREF_WHOLE && parent->imp.registered_fd != context->imp.fd)
            return TEEC_ERROR_BAD_PARAMETERS;
        switch (type) {
        case TEEC_NONE:
            break;
        case TEEC_VALUE_INPUT:
        case TEEC_VALUE_OUTPUT:
        case TEEC_VALUE_INOUT:
            params[slot].value.a = given->value.a;
            params[slot].value.b = given->value.b;
            break;
        case TEEC_MEMREF_TEMP_INPUT:
        case TEEC_MEMREF_TEMP_OUTPUT:
        case TEEC_MEMREF_TEMP_INOUT:
            params[slot].memref.size = given->tmpref.size;
            if (!given->tmpref.size)
                break;
            copy = mmap(NULL, given->tmpref.size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
            memcpy(copy, given->tmpref.buffer, given->tmpref.size);
            params[slot].memref.buffer = copy;
            mapped[slot] = (struct mapped){ copy, given->tmpref.size };
            break;
        case TEEC_MEMREF_WHOLE:
            type = TEEC_MEMREF_TEMP_INPUT - TEEC_MEM_INPUT + parent->flags;
            params[slot].memref.buffer = map_again(parent->buffer, parent->size, &mapped[slot]);
            params[slot].memref.size = parent->size;
            break;
        case TEEC_MEMREF_PARTIAL_INPUT:
        case TEEC_MEMREF_PARTIAL_OUTPUT:
        case TEEC_MEMREF_PARTIAL_INOUT:
            type -= TEEC_MEMREF_PARTIAL_INPUT - TEEC_MEMREF_TEMP_INPUT;
            if (given->memref.offset + given->memref.size > parent->size ||
                (type & 3 & ~parent->flags))
                return TEEC_ERROR_BAD_PARAMETERS;
            params[slot].memref.buffer =
                map_again((char *)parent->buffer + given->memref.offset, given->memref.size, &mapped[slot]);
            params[slot].memref.size = given->memref.size;
            break;
        default:
            return TEEC_ERROR_BAD_PARAMETERS;
        }
        *types |= type << 4 * slot;
    }
    return TEEC_SUCCESS;
}

static void give_back(TEEC_Operation *operation, uint32_t types, const TEE_Param *params)
{
    int slot;

    for (slot = 0; slot < SLOTS; slot++) {
        uint32_t type = TEEC_PARAM_TYPE_GET(operation->paramTypes, slot);
        TEEC_Parameter *to = &operation->params[slot];

        if (!gives(TEEC_PARAM_TYPE_GET(types, slot)))
            continue;
        if (type <= TEEC_VALUE_INOUT) {
            to->value.a = params[slot].value.a;
            to->value.b = params[slot].value.b;
        } else if (type <= TEEC_MEMREF_TEMP_INOUT) {
            if (params[slot].memref.size <= to->tmpref.size && to->tmpref.size)
                memcpy(to->tmpref.buffer, params[slot].memref.buffer, params[slot].memref.size);
            to->tmpref.size = params[slot].memref.size;
        } else {
            to->memref.size = params[slot].memref.size;
        }
    }
}

static void unmap(const struct mapped *mapped)
{
    int slot;

    for (slot = 0; slot < SLOTS; slot++)
        if (mapped[slot].base != MAP_FAILED)
            munmap(mapped[slot].base, mapped[slot].length);
}

/* What clients call. */

TEEC_Result TEEC_InitializeContext(const char *name, TEEC_Context *context)
{
    (void)name;
    *context = (TEEC_Context){ .imp = { .reg_mem = true } };
    context->imp.fd = __atomic_add_fetch(&contexts, 1, __ATOMIC_RELAXED) % CONTEXTS;
    return TEEC_SUCCESS;
}

/* Says how much shared memory of its there still is, if there is some. */
void TEEC_FinalizeContext(TEEC_Context *context)
{
    if (registered[context->imp.fd])
        printf("left: %d shared memories\n", registered[context->imp.fd]);
}

TEEC_Result TEEC_RegisterSharedMemory(TEEC_Context *context, TEEC_SharedMemory *memory)
{
    if (!context || !memory || !memory->flags || memory->flags & ~3)
        return TEEC_ERROR_BAD_PARAMETERS;
    memset(&memory->imp, 0, sizeof memory->imp);
    memory->imp.registered_fd = context->imp.fd;
    __atomic_add_fetch(&registered[context->imp.fd], 1, __ATOMIC_RELAXED);
    return TEEC_SUCCESS;
}

TEEC_Result TEEC_AllocateSharedMemory(TEEC_Context *context, TEEC_SharedMemory *memory)
{
    TEEC_Result result = TEEC_RegisterSharedMemory(context, memory);

    if (result == TEEC_SUCCESS) {
        memory->imp.alloced_size = memory->size;
        memory->buffer = mmap(NULL, memory->size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    }
    return result;
}

void TEEC_ReleaseSharedMemory(TEEC_SharedMemory *memory)
{
    if (memory->imp.alloced_size)
        munmap(memory->buffer, memory->imp.alloced_size);
    __atomic_sub_fetch(&registered[memory->imp.registered_fd], 1, __ATOMIC_RELAXED);
}

static TEEC_Result call(TEEC_Session *session, const TEEC_UUID *uuid, uint32_t command, TEEC_Operation *operation,
                        uint32_t *origin)
{
    static const TEEC_Operation without;
    static bool was_short_of_memory;
    TEE_Param params[SLOTS] = { 0 };
    struct mapped mapped[SLOTS];
    uint32_t types, whose = TEEC_ORIGIN_API;
    TEEC_Result result;

    if (operation)
        __atomic_store_n(&operation->imp.session, session, __ATOMIC_RELEASE);
    result = take(session->imp.ctx, operation ? operation : &without, &types, params, mapped);
    /* It ends before the application hears of it. */
    if (!uuid && __atomic_exchange_n(&sessions[session->imp.session_id].is_cancelled, false, __ATOMIC_RELAXED)) {
        result = TEEC_ERROR_CANCEL;
        whose = TEEC_ORIGIN_TEE;
        unmap(mapped);
    }
    /* The first that opens a session with a parameter finds no memory for it, where that is asked for. */
    if (result == TEEC_SUCCESS && uuid && types && getenv("TEE_IS_SHORT_OF_MEMORY") &&
        !__atomic_exchange_n(&was_short_of_memory, true, __ATOMIC_RELAXED)) {
        result = TEEC_ERROR_OUT_OF_MEMORY;
        whose = TEEC_ORIGIN_TEE;
        unmap(mapped);
    }
    if (result == TEEC_SUCCESS) {
        result = uuid ? begin(uuid, types, params, &session->imp.session_id, &whose)
                      : enter(&sessions[session->imp.session_id], INVOKE, command, types, params, &whose);
        if (operation)
            give_back(operation, types, params);
        unmap(mapped);
    }
    if (origin)
        *origin = whose;
    return result;
}

TEEC_Result TEEC_OpenSession(TEEC_Context *context, TEEC_Session *session, const TEEC_UUID *application, uint32_t login,
                             const void *data, TEEC_Operation *operation, uint32_t *origin)
{
    (void)login;
    (void)data;
    session->imp.ctx = context;
    return call(session, application, 0, operation, origin);
}

TEEC_Result TEEC_InvokeCommand(TEEC_Session *session, uint32_t command, TEEC_Operation *operation, uint32_t *origin)
{
    return call(session, NULL, command, operation, origin);
}

void TEEC_CloseSession(TEEC_Session *session)
{
    if (session)
        end(session->imp.session_id);
}

void TEEC_RequestCancellation(TEEC_Operation *operation)
{
    TEEC_Session *session = __atomic_load_n(&operation->imp.session, __ATOMIC_ACQUIRE);

    if (session)
        __atomic_store_n(&sessions[session->imp.session_id].is_cancelled, true, __ATOMIC_RELAXED);
}
