/* See strict_ta.h. */
#include <stdio.h>
#include <string.h>

#include <strict_ta.h>
#include <tee_internal_api.h>
#include <tee_internal_api_extensions.h>

#define NO_PARAMS 0
#define GREETED \
    TEE_PARAM_TYPES(TEE_PARAM_TYPE_VALUE_INOUT, TEE_PARAM_TYPE_MEMREF_OUTPUT, TEE_PARAM_TYPE_NONE, TEE_PARAM_TYPE_NONE)

TEE_Result TA_CreateEntryPoint(void)
{
    return TEE_SUCCESS;
}

void TA_DestroyEntryPoint(void)
{
}

TEE_Result TA_OpenSessionEntryPoint(uint32_t types, TEE_Param params[4], void **session)
{
    bool is_short = false;

    (void)session;
    printf("opens %x\n", types);
    if (types == NO_PARAMS)
        return TEE_SUCCESS;
    if ((types & 0xFF) != GREETED)
        return TEE_ERROR_BAD_PARAMETERS;
    params[0].value.a++;
    is_short = params[1].memref.size < STRICT_GREETING;
    params[1].memref.size = STRICT_GREETING;
    if (is_short)
        return TEE_ERROR_SHORT_BUFFER;
    memset(params[1].memref.buffer, '!', STRICT_GREETING);
    return types == GREETED ? TEE_SUCCESS : TEE_ERROR_BAD_PARAMETERS;
}

void TA_CloseSessionEntryPoint(void *session)
{
    (void)session;
}

/* In a line of its own, whoever prints meanwhile. */
static char line[200];

static void __attribute__((noinline, noclone, noipa)) look(uint32_t slot, uint32_t type, TEE_Param *param)
{
    unsigned char *bytes = param->memref.buffer;
    char *end = line + strlen(line);
    size_t room = line + sizeof line - end;

    if (type == TEE_PARAM_TYPE_NONE) {
        snprintf(end, room, " -");
    } else if (type <= TEE_PARAM_TYPE_VALUE_INOUT) {
        snprintf(end, room, " %u,%u", param->value.a, param->value.b);
        if (type & 2) {
            param->value.a += 10 + slot;
            param->value.b += 20 + slot;
        }
    } else {
        snprintf(end, room, " %zu:%d", param->memref.size,
                 bytes && param->memref.size ? bytes[param->memref.size - 1] : -1);
        if (type & 2 && param->memref.size) {
            bytes[0]++;
            param->memref.size--;
        }
    }
}

TEE_Result TA_InvokeCommandEntryPoint(void *session, uint32_t command, uint32_t types, TEE_Param params[4])
{
    uint32_t slot;

    (void)session;
    snprintf(line, sizeof line, "seen %x %x", command, types);
    for (slot = 0; slot < 4; slot++)
        look(slot, TEE_PARAM_TYPE_GET(types, slot), &params[slot]);
    puts(line);
    return command & 1 ? command : TEE_SUCCESS;
}
