/* A hostile application: takes whatever memory it is lent, and lies in it. It says that it has entered it, so that it is lent the
 * next time again. */
#include "lies.h"

#include <tee_internal_api.h>

/* Where an arena counts who has entered it: `baton::ENTERED`. */
#define ENTERED 104
/* Of each lie: thousands of single ones, or chunks. */
#define TIMES 2

static TEE_Result lie_in_all(uint32_t types, TEE_Param params[4])
{
    static unsigned calls;
    int slot;

    for (slot = 0; slot < 4; slot++) {
        volatile unsigned char *memory = params[slot].memref.buffer;

        if (TEE_PARAM_TYPE_GET(types, slot) != TEE_PARAM_TYPE_MEMREF_INOUT || params[slot].memref.size < CHUNKS + CHUNK)
            continue;
        lie_in(params[slot].memref.buffer, params[slot].memref.size, calls++ % 2, TIMES);
        put_half(memory + ENTERED, lie());
    }
    return TEE_SUCCESS;
}

TEE_Result TA_CreateEntryPoint(void)
{
    return TEE_SUCCESS;
}

void TA_DestroyEntryPoint(void)
{
}

TEE_Result TA_OpenSessionEntryPoint(uint32_t types, TEE_Param params[4], void **session)
{
    (void)session;
    return lie_in_all(types, params);
}

void TA_CloseSessionEntryPoint(void *session)
{
    (void)session;
}

TEE_Result TA_InvokeCommandEntryPoint(void *session, uint32_t command, uint32_t types, TEE_Param params[4])
{
    (void)session;
    (void)command;
    return lie_in_all(types, params);
}
