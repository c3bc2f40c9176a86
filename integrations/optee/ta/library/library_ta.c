/* A trusted application with a library of somebody else's in it: see library_ta.h. */
#include <library_ta.h>
#include <tee_internal_api.h>
#include <tee_internal_api_extensions.h>

#include "squeeze.h"

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

TEE_Result TA_InvokeCommandEntryPoint(void *session, uint32_t command, uint32_t types, TEE_Param params[4])
{
    struct squeezed squeezed = { 0 };

    (void)session;
    if (command != LIBRARY_CMD_SQUEEZE)
        return TEE_ERROR_NOT_SUPPORTED;
    if (types != TEE_PARAM_TYPES(TEE_PARAM_TYPE_VALUE_INOUT, TEE_PARAM_TYPE_NONE, TEE_PARAM_TYPE_NONE,
                                 TEE_PARAM_TYPE_NONE))
        return TEE_ERROR_BAD_PARAMETERS;
    if (squeeze(params[0].value.a, &squeezed))
        return TEE_ERROR_GENERIC;
    params[0].value.a = squeezed.length;
    params[0].value.b = squeezed.crc;
    return TEE_SUCCESS;
}
