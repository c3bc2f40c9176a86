/* As much of the TEE Client API (GlobalPlatform, version 1.0) as is used here, laid out as OP-TEE's libteec has it. */
#ifndef TEE_CLIENT_API_H
#define TEE_CLIENT_API_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TEEC_NONE 0x0
#define TEEC_VALUE_INPUT 0x1
#define TEEC_VALUE_OUTPUT 0x2
#define TEEC_VALUE_INOUT 0x3
#define TEEC_MEMREF_TEMP_INPUT 0x5
#define TEEC_MEMREF_TEMP_OUTPUT 0x6
#define TEEC_MEMREF_TEMP_INOUT 0x7
#define TEEC_MEMREF_WHOLE 0xC
#define TEEC_MEMREF_PARTIAL_INPUT 0xD
#define TEEC_MEMREF_PARTIAL_OUTPUT 0xE
#define TEEC_MEMREF_PARTIAL_INOUT 0xF
#define TEEC_MEM_INPUT 1
#define TEEC_MEM_OUTPUT 2

#define TEEC_SUCCESS 0x00000000
#define TEEC_ERROR_CANCEL 0xFFFF0002
#define TEEC_ERROR_BAD_PARAMETERS 0xFFFF0006
#define TEEC_ERROR_ITEM_NOT_FOUND 0xFFFF0008
#define TEEC_ERROR_OUT_OF_MEMORY 0xFFFF000C
#define TEEC_ERROR_TARGET_DEAD 0xFFFF3024

#define TEEC_ORIGIN_API 1
#define TEEC_ORIGIN_TEE 3
#define TEEC_ORIGIN_TRUSTED_APP 4

#define TEEC_LOGIN_PUBLIC 0

#define TEEC_PARAM_TYPES(p0, p1, p2, p3) ((p0) | (p1) << 4 | (p2) << 8 | (p3) << 12)
#define TEEC_PARAM_TYPE_GET(p, i) ((p) >> 4 * (i) & 0xF)

typedef uint32_t TEEC_Result;

typedef struct {
    struct {
        int fd;
        bool reg_mem;
        bool memref_null;
    } imp;
} TEEC_Context;

typedef struct {
    uint32_t timeLow;
    uint16_t timeMid;
    uint16_t timeHiAndVersion;
    uint8_t clockSeqAndNode[8];
} TEEC_UUID;

typedef struct {
    void *buffer;
    size_t size;
    uint32_t flags;
    struct {
        int id;
        size_t alloced_size;
        void *shadow_buffer;
        int registered_fd;
        uint32_t flags;
    } imp;
} TEEC_SharedMemory;

typedef struct {
    void *buffer;
    size_t size;
} TEEC_TempMemoryReference;

typedef struct {
    TEEC_SharedMemory *parent;
    size_t size;
    size_t offset;
} TEEC_RegisteredMemoryReference;

typedef struct {
    uint32_t a;
    uint32_t b;
} TEEC_Value;

typedef union {
    TEEC_TempMemoryReference tmpref;
    TEEC_RegisteredMemoryReference memref;
    TEEC_Value value;
} TEEC_Parameter;

typedef struct {
    struct {
        TEEC_Context *ctx;
        uint32_t session_id;
    } imp;
} TEEC_Session;

typedef struct {
    uint32_t started;
    uint32_t paramTypes;
    TEEC_Parameter params[4];
    struct {
        TEEC_Session *session;
    } imp;
} TEEC_Operation;

TEEC_Result TEEC_InitializeContext(const char *name, TEEC_Context *context);
void TEEC_FinalizeContext(TEEC_Context *context);
TEEC_Result TEEC_RegisterSharedMemory(TEEC_Context *context, TEEC_SharedMemory *memory);
TEEC_Result TEEC_AllocateSharedMemory(TEEC_Context *context, TEEC_SharedMemory *memory);
void TEEC_ReleaseSharedMemory(TEEC_SharedMemory *memory);
TEEC_Result TEEC_OpenSession(TEEC_Context *context, TEEC_Session *session, const TEEC_UUID *application, uint32_t login,
                             const void *data, TEEC_Operation *operation, uint32_t *origin);
void TEEC_CloseSession(TEEC_Session *session);
TEEC_Result TEEC_InvokeCommand(TEEC_Session *session, uint32_t command, TEEC_Operation *operation, uint32_t *origin);
void TEEC_RequestCancellation(TEEC_Operation *operation);

#endif
