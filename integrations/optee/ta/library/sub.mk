# ZLIB names the folder with zlib's sources, of which those are taken that need no C library (Z_SOLO). -pg counts what is left of calls when functions have been inlined and
# cloned: without either it counts the same as hooks.
ZLIB_SOURCES = adler32 crc32 deflate inffast inflate inftrees trees zutil
WHOLE = -fno-inline -fno-partial-inlining -fno-ipa-cp -fno-ipa-sra -fno-ipa-icf

global-incdirs-y += include
global-incdirs_ext-y += $(ZLIB)
global-cppflags-y += -DZ_SOLO
cflags-y += $(WHOLE)
srcs-y += library_ta.c
srcs-y += squeeze.c
srcs-y += $(ZLIB_SOURCES:%=$(ZLIB)/%.c)
