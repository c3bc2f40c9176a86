/* What OP-TEE asks of every trusted application. Each session has an instance of its own. The text is there
 * three times, and zlib takes a third of a megabyte. */
#ifndef USER_TA_HEADER_DEFINES_H
#define USER_TA_HEADER_DEFINES_H

#include <library_ta.h>

#define TA_UUID LIBRARY_TA_UUID
#define TA_FLAGS TA_FLAG_EXEC_DDR
#define TA_STACK_SIZE (16 * 1024)
#define TA_DATA_SIZE (2 * 1024 * 1024)
#define TA_VERSION "1.0"
#define TA_DESCRIPTION "Compresses with zlib"

#endif
