global-incdirs-y += include
srcs-y += callee_ta.c
