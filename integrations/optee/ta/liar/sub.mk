global-incdirs-y += include
srcs-y += liar_ta.c
