/* A trusted application that does what others do, in numbers that are known: see demo_ta.h. */
#include <callee_ta.h>
#include <demo_ta.h>
#include <tee_internal_api.h>
#include <tee_internal_api_extensions.h>

#include "work.h"

/* The folder with it is named where there are hooks. */
#if __has_include(<teeperf_tee.h>)
#include <teeperf_tee.h>
#endif

#define VALUE_INOUT \
    TEE_PARAM_TYPES(TEE_PARAM_TYPE_VALUE_INOUT, TEE_PARAM_TYPE_NONE, TEE_PARAM_TYPE_NONE, TEE_PARAM_TYPE_NONE)
#define ALL_FOUR                                                                     \
    TEE_PARAM_TYPES(TEE_PARAM_TYPE_VALUE_INOUT, TEE_PARAM_TYPE_MEMREF_INPUT,         \
                    TEE_PARAM_TYPE_MEMREF_OUTPUT, TEE_PARAM_TYPE_VALUE_OUTPUT)
#define MEMREF_OUTPUT \
    TEE_PARAM_TYPES(TEE_PARAM_TYPE_MEMREF_OUTPUT, TEE_PARAM_TYPE_NONE, TEE_PARAM_TYPE_NONE, TEE_PARAM_TYPE_NONE)
#define NO_PARAMS \
    TEE_PARAM_TYPES(TEE_PARAM_TYPE_NONE, TEE_PARAM_TYPE_NONE, TEE_PARAM_TYPE_NONE, TEE_PARAM_TYPE_NONE)

/* Seconds in which somebody has to cancel. */
#define PATIENCE 10

static TEE_Result calls(TEE_Param params[4])
{
    uint32_t sum = 0;
    for (uint32_t i = 0; i < params[0].value.a; i++)
        sum += outer(i);
    params[0].value.a = sum;
    return TEE_SUCCESS;
}

static TEE_Result all_four(TEE_Param params[4])
{
    const uint8_t *in = params[1].memref.buffer;
    uint8_t *out = params[2].memref.buffer;
    size_t size = params[1].memref.size;
    bool is_short = params[2].memref.size < size;
    uint32_t a = params[0].value.a;

    params[2].memref.size = size;
    if (is_short)
        return TEE_ERROR_SHORT_BUFFER;
    params[0].value.a = params[0].value.b;
    params[0].value.b = a;
    params[3].value.a = 0;
    params[3].value.b = size;
    for (size_t i = 0; i < size; i++) {
        out[size - 1 - i] = in[i];
        params[3].value.a += in[i];
    }
    return TEE_SUCCESS;
}

static TEE_Result nested(TEE_Param params[4])
{
    TEE_UUID uuid = CALLEE_TA_UUID;
    TEE_TASessionHandle session = TEE_HANDLE_NULL;
    TEE_Param values[4] = { 0 };
    uint32_t origin = 0;
    TEE_Result result = TEE_OpenTASession(&uuid, TEE_TIMEOUT_INFINITE, NO_PARAMS, values, &session, &origin);

    values[0].value.a = 1;
    for (uint32_t i = 0; result == TEE_SUCCESS && i < params[0].value.a; i++)
        result = TEE_InvokeTACommand(session, TEE_TIMEOUT_INFINITE, CALLEE_CMD_DOUBLE, VALUE_INOUT, values, &origin);
    TEE_CloseTASession(session);
    params[0].value.a = values[0].value.a;
    return result;
}

static TEE_Result until_cancelled(void)
{
    TEE_Time start = { 0 };
    TEE_Time now = { 0 };

    TEE_GetSystemTime(&start);
    TEE_UnmaskCancellation();
    do {
        if (TEE_GetCancellationFlag())
            return TEE_ERROR_CANCEL;
        compute(1000);
        TEE_GetSystemTime(&now);
    } while (now.seconds - start.seconds < PATIENCE);
    return TEE_ERROR_TIMEOUT;
}

static void crash(uint32_t number)
{
    volatile uintptr_t nowhere = 0;

    *(volatile uint32_t *)nowhere = number;
}

static TEE_Result take(TEE_Param params[4])
{
#ifdef TEEPERF_TAKE_LEAST
    params[0].memref.size = teeperf_take(params[0].memref.buffer, params[0].memref.size);
    return TEE_SUCCESS;
#else
    (void)params;
    return TEE_ERROR_NOT_SUPPORTED;
#endif
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
    uint32_t expected = VALUE_INOUT;

    (void)session;
    if (command == DEMO_CMD_PARAMS)
        expected = ALL_FOUR;
    else if (command == DEMO_CMD_UNTIL_CANCELLED)
        expected = NO_PARAMS;
    else if (command == DEMO_CMD_TAKE)
        expected = MEMREF_OUTPUT;
    if (types != expected)
        return TEE_ERROR_BAD_PARAMETERS;

    switch (command) {
    case DEMO_CMD_CALLS:
        return calls(params);
    case DEMO_CMD_COMPUTE:
        params[0].value.a = compute(params[0].value.a);
        return TEE_SUCCESS;
    case DEMO_CMD_LEAPS:
        params[0].value.a = leaps(params[0].value.a);
        return TEE_SUCCESS;
    case DEMO_CMD_PARAMS:
        return all_four(params);
    case DEMO_CMD_NESTED:
        return nested(params);
    case DEMO_CMD_PANIC:
        TEE_Panic(params[0].value.a);
        return TEE_ERROR_GENERIC;
    case DEMO_CMD_CRASH:
        crash(params[0].value.a);
        return TEE_ERROR_GENERIC;
    case DEMO_CMD_UNTIL_CANCELLED:
        return until_cancelled();
    case DEMO_CMD_TAKE:
        return take(params);
    default:
        return TEE_ERROR_NOT_SUPPORTED;
    }
}
