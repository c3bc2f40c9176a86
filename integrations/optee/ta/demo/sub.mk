global-incdirs-y += include ../callee/include
srcs-y += demo_ta.c
srcs-y += work.c
