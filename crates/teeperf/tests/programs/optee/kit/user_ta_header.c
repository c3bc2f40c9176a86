/* Linked into every trusted application: where libteec.c enters it. */
#include <tee_internal_api.h>
#include <tee_internal_api_extensions.h>
#include <user_ta_header_defines.h>

#define NO_HOOK __attribute__((no_instrument_function))

const uint32_t entry_flags = TA_FLAGS;

NO_HOOK TEE_Result entry_create(void)
{
    return TA_CreateEntryPoint();
}

NO_HOOK void entry_destroy(void)
{
    TA_DestroyEntryPoint();
}

NO_HOOK TEE_Result entry_open(uint32_t types, TEE_Param params[4], void **session)
{
    return TA_OpenSessionEntryPoint(types, params, session);
}

NO_HOOK void entry_close(void *session)
{
    TA_CloseSessionEntryPoint(session);
}

NO_HOOK TEE_Result entry_invoke(void *session, uint32_t command, uint32_t types, TEE_Param params[4])
{
    return TA_InvokeCommandEntryPoint(session, command, types, params);
}
