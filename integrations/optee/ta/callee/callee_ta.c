/* A trusted application that another one calls: see callee_ta.h. */
#include <callee_ta.h>
#include <tee_internal_api.h>
#include <tee_internal_api_extensions.h>

TEE_Result TA_CreateEntryPoint(void)
{
    return TEE_SUCCESS;
}

void TA_DestroyEntryPoint(void)
{
}

TEE_Result TA_OpenSessionEntryPoint(uint32_t types, TEE_Param params[4], void **session)
{
    (void)types;
    (void)params;
    (void)session;
    return TEE_SUCCESS;
}

void TA_CloseSessionEntryPoint(void *session)
{
    (void)session;
}

static uint32_t __attribute__((noinline, noclone, noipa)) twice(uint32_t number)
{
    return 2 * number;
}

TEE_Result TA_InvokeCommandEntryPoint(void *session, uint32_t command, uint32_t types, TEE_Param params[4])
{
    (void)session;
    if (command != CALLEE_CMD_DOUBLE)
        return TEE_ERROR_NOT_SUPPORTED;
    if (types != TEE_PARAM_TYPES(TEE_PARAM_TYPE_VALUE_INOUT, TEE_PARAM_TYPE_NONE, TEE_PARAM_TYPE_NONE,
                                 TEE_PARAM_TYPE_NONE))
        return TEE_ERROR_BAD_PARAMETERS;
    params[0].value.a = twice(params[0].value.a);
    return TEE_SUCCESS;
}
