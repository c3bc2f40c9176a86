global-incdirs-y += .. ../strict ../strict/include
srcs-y += liar_ta.c
