/* As much of the TEE Internal Core API (GlobalPlatform, version 1.1.2) as trusted applications here use; libteec.c has it. */
#ifndef TEE_INTERNAL_API_H
#define TEE_INTERNAL_API_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef uint32_t TEE_Result;

typedef struct {
    uint32_t timeLow;
    uint16_t timeMid;
    uint16_t timeHiAndVersion;
    uint8_t clockSeqAndNode[8];
} TEE_UUID;

typedef struct {
    uint32_t seconds;
    uint32_t millis;
} TEE_Time;

typedef union {
    struct {
        void *buffer;
        size_t size;
    } memref;
    struct {
        uint32_t a;
        uint32_t b;
    } value;
} TEE_Param;

typedef struct __TEE_TASessionHandle *TEE_TASessionHandle;

#define TEE_HANDLE_NULL 0
#define TEE_TIMEOUT_INFINITE 0xFFFFFFFF

#define TEE_SUCCESS 0x00000000
#define TEE_ERROR_GENERIC 0xFFFF0000
#define TEE_ERROR_ACCESS_DENIED 0xFFFF0001
#define TEE_ERROR_CANCEL 0xFFFF0002
#define TEE_ERROR_BAD_PARAMETERS 0xFFFF0006
#define TEE_ERROR_BAD_STATE 0xFFFF0007
#define TEE_ERROR_ITEM_NOT_FOUND 0xFFFF0008
#define TEE_ERROR_NOT_SUPPORTED 0xFFFF000A
#define TEE_ERROR_SHORT_BUFFER 0xFFFF0010
#define TEE_ERROR_TIMEOUT 0xFFFF3001
#define TEE_ERROR_TARGET_DEAD 0xFFFF3024

#define TEE_PARAM_TYPE_NONE 0
#define TEE_PARAM_TYPE_VALUE_INPUT 1
#define TEE_PARAM_TYPE_VALUE_OUTPUT 2
#define TEE_PARAM_TYPE_VALUE_INOUT 3
#define TEE_PARAM_TYPE_MEMREF_INPUT 5
#define TEE_PARAM_TYPE_MEMREF_OUTPUT 6
#define TEE_PARAM_TYPE_MEMREF_INOUT 7
#define TEE_PARAM_TYPES(t0, t1, t2, t3) ((t0) | (t1) << 4 | (t2) << 8 | (t3) << 12)
#define TEE_PARAM_TYPE_GET(t, i) ((t) >> 4 * (i) & 0xF)

#define TEE_MEMORY_ACCESS_READ 1
#define TEE_MEMORY_ACCESS_WRITE 2
#define TEE_MEMORY_ACCESS_ANY_OWNER 4

TEE_Result TEE_CheckMemoryAccessRights(uint32_t flags, void *buffer, size_t size);
TEE_Result TEE_Wait(uint32_t milliseconds);
void TEE_Panic(TEE_Result code) __attribute__((noreturn));
void TEE_GetSystemTime(TEE_Time *time);
bool TEE_GetCancellationFlag(void);
bool TEE_UnmaskCancellation(void);
TEE_Result TEE_OpenTASession(const TEE_UUID *application, uint32_t timeout, uint32_t types, TEE_Param params[4],
                             TEE_TASessionHandle *session, uint32_t *origin);
TEE_Result TEE_InvokeTACommand(TEE_TASessionHandle session, uint32_t timeout, uint32_t command, uint32_t types,
                               TEE_Param params[4], uint32_t *origin);
void TEE_CloseTASession(TEE_TASessionHandle session);

/* What every trusted application brings. */
TEE_Result TA_CreateEntryPoint(void);
void TA_DestroyEntryPoint(void);
TEE_Result TA_OpenSessionEntryPoint(uint32_t types, TEE_Param params[4], void **session);
void TA_CloseSessionEntryPoint(void *session);
TEE_Result TA_InvokeCommandEntryPoint(void *session, uint32_t command, uint32_t types, TEE_Param params[4]);

#endif
