# As much of OP-TEE's development kit as trusted applications need that are built for this machine: a shared library,
# which libteec.c loads. Variables are the kit's own.

O ?= .
ta-dev-kit := $(patsubst %/mk/,%,$(dir $(lastword $(MAKEFILE_LIST))))
comma := ,

include sub.mk

sources := $(srcs-y) $(spec-srcs) $(ta-dev-kit)/user_ta_header.c
objects := $(addprefix $(O)/,$(addsuffix .o,$(notdir $(sources))))
vpath %.c $(sort $(dir $(sources)))

# Nothing in the process that loads it comes in between its own calls, as nothing does in the secure world.
$(O)/$(BINARY).elf: $(objects)
	$(CC) -shared -Wl,-Bsymbolic $(addprefix -Wl$(comma),$(link-ldflagsta_arm64)) -o $@ $^ $(LDADD)

$(O)/%.c.o: %.c
	$(CC) -O2 -g -fPIC -I$(ta-dev-kit)/include $(addprefix -I,$(global-incdirs-y)) -I. $(CFLAGS_ta_arm64) -c -o $@ $<
