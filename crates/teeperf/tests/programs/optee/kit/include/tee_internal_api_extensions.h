/* OP-TEE's own, as much as is used here. */
#ifndef TEE_INTERNAL_API_EXTENSIONS_H
#define TEE_INTERNAL_API_EXTENSIONS_H

#include <tee_internal_api.h>

#define TEE_MEMORY_ACCESS_NONSECURE 0x10000000

#define TA_FLAG_SINGLE_INSTANCE (1 << 2)
#define TA_FLAG_MULTI_SESSION (1 << 3)
#define TA_FLAG_EXEC_DDR 0

#endif
