global-incdirs-y += include
srcs-y += strict_ta.c
