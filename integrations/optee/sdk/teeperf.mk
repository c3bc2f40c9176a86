# Hooks for a trusted application, as `teeperf install-sdk` installs them. In its Makefile, before ta_dev_kit.mk is included:
#
#     TEEPERF ?= /where/the/sdk/is/optee
#     include $(TEEPERF)/teeperf.mk
#
# What can be set before that, or on make's command line:
#
#     TEEPERF_PROBE=trace          every call and return is recorded; tree: calls and times summed for
#                                  each call path; gprof: calls counted, as gcc's -pg has it; none: built
#                                  as ever
#     TEEPERF_TREE_SIZE=32768      bytes in which is summed what cannot be written, or with tree everything
#     TEEPERF_ARCS_SIZE=32768      with gprof: bytes in which calls are counted, 24 for a pair of places,
#                                  16 in 32-bit applications
#     TEEPERF_EXCLUDE_FILES=a,b    no hooks in files whose name contains one of these; not with gprof
#     TEEPERF_EXCLUDE_FUNCTIONS=f  no hooks in functions whose name contains one of these; not with gprof
#     TEEPERF_COUNTER=y            reads the generic timer, for record --clock cycle: OP-TEE needs CFG_FTRACE_SUPPORT=y
#     TEEPERF_PERMIT=y             a build with NDEBUG may be recorded as well

TEEPERF_PROBE ?= trace
teeperf-folder := $(patsubst %/,%,$(dir $(lastword $(MAKEFILE_LIST))))

ifeq ($(filter $(TEEPERF_PROBE),trace tree gprof none),)
$(error TEEPERF_PROBE=$(TEEPERF_PROBE): one of trace, tree, gprof, none)
endif

ifneq ($(TEEPERF_PROBE),none)

# The development kit names its targets so, and takes flags by their names.
teeperf-comma := ,
teeperf-excluded = teeperf_ta.c,user_ta_header.c$(addprefix $(teeperf-comma),$(TEEPERF_EXCLUDE_FILES))
ifeq ($(TEEPERF_PROBE),gprof)
teeperf-hooks = -pg -DTEEPERF_COUNTS $(addprefix -DTEEPERF_ARCS_SIZE=,$(TEEPERF_ARCS_SIZE))
else
teeperf-hooks = -finstrument-functions \
	-finstrument-functions-exclude-file-list=$(teeperf-excluded) \
	$(addprefix -finstrument-functions-exclude-function-list=,$(TEEPERF_EXCLUDE_FUNCTIONS)) \
	$(addprefix -DTEEPERF_TREE_SIZE=,$(TEEPERF_TREE_SIZE)) $(if $(filter tree,$(TEEPERF_PROBE)),-DTEEPERF_SUMS)
endif
teeperf-cflags = $(teeperf-hooks) -I$(teeperf-folder)/../include \
	$(if $(filter y,$(TEEPERF_PERMIT)),-DTEEPERF_PERMIT) $(if $(filter y,$(TEEPERF_COUNTER)),-DTEEPERF_COUNTER)
# Of the library what is not used is left out.
teeperf-ldflags = --wrap=TA_OpenSessionEntryPoint --wrap=TA_InvokeCommandEntryPoint --gc-sections

CFLAGS_ta_arm32 += $(teeperf-cflags)
CFLAGS_ta_arm64 += $(teeperf-cflags)
link-ldflagsta_arm32 += $(teeperf-ldflags)
link-ldflagsta_arm64 += $(teeperf-ldflags)
spec-srcs += $(teeperf-folder)/teeperf_ta.c
ifneq ($(TEEPERF_PROBE),gprof)
# Whose calls OP-TEE counts as well (CFG_TA_MCOUNT=y) needs OP-TEE's entry for that: what comes first is taken.
LDADD += $(if $(filter y,$(CFG_TA_MCOUNT)),$(TA_DEV_KIT_DIR)/lib/libutils.a)
endif
LDADD += $(teeperf-folder)/../lib/$(if $(filter ta_arm32,$(sm) $(TA_TARGET)),armv7,aarch64)/libteeperf_tee.a

endif
