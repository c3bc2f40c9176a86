global-incdirs-y += include
