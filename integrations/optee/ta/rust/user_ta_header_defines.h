/* What OP-TEE asks of every trusted application. Each session has an instance of its own. */
#ifndef USER_TA_HEADER_DEFINES_H
#define USER_TA_HEADER_DEFINES_H

#include <rust_ta.h>

#define TA_UUID RUST_TA_UUID
#define TA_FLAGS TA_FLAG_EXEC_DDR
#define TA_STACK_SIZE (8 * 1024)
#define TA_DATA_SIZE (32 * 1024)
#define TA_VERSION "1.0"
#define TA_DESCRIPTION "Calls of Rust functions, whose number is known"

#endif
