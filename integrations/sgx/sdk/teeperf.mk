# Hooks for an enclave of Intel's SDK, as `teeperf install-sdk FOLDER --target x86_64 --threads apart` installs them. In the Makefile of the
# enclave, behind its flags:
#
#     TEEPERF ?= /where/the/sdk/is/sgx
#     include $(TEEPERF)/teeperf.mk
#     Enclave_C_Flags += $(TEEPERF_CFLAGS)
#     Enclave_Link_Flags := $(TEEPERF_LDFLAGS) $(Enclave_Link_Flags)
#     Enclave_Objects += $(TEEPERF_OBJECTS)
#
# by whatever names it has for its flags and for the objects that it links.
# Where C++ has flags of its own they take the same; Enclave_C_Flags is what the objects here are compiled with. What can be set before that, or on make's command line:
#
#     TEEPERF_PROBE=trace          every call and return is recorded; none: nothing is, and what the sources call of this does nothing
#     TEEPERF_ENCLAVE=enclave.so   the linked file, with symbols, as --elf names it
#     TEEPERF_EXCLUDE_FILES=a,b    no hooks in files whose name contains one of these
#     TEEPERF_EXCLUDE_FUNCTIONS=f  no hooks in functions whose name contains one of these
#     TEEPERF_PERMIT=y             a build with NDEBUG may be recorded as well

TEEPERF_PROBE ?= trace
TEEPERF_ENCLAVE ?= enclave.so
teeperf-folder := $(patsubst %/,%,$(dir $(lastword $(MAKEFILE_LIST))))
teeperf-comma := ,

ifeq ($(filter $(TEEPERF_PROBE),trace none),)
$(error TEEPERF_PROBE=$(TEEPERF_PROBE): one of trace, none)
endif

ifeq ($(TEEPERF_PROBE),none)

TEEPERF_CFLAGS = -DTEEPERF_DISABLE -I$(teeperf-folder) -I$(teeperf-folder)/../include

else

# What edger8r makes runs before memory is attached and behind that.
TEEPERF_CFLAGS = -finstrument-functions \
	-finstrument-functions-exclude-file-list=teeperf_,_t.c$(addprefix $(teeperf-comma),$(TEEPERF_EXCLUDE_FILES)) \
	$(addprefix -finstrument-functions-exclude-function-list=,$(TEEPERF_EXCLUDE_FUNCTIONS)) \
	-I$(teeperf-folder) -I$(teeperf-folder)/../include $(if $(filter y,$(TEEPERF_PERMIT)),-DTEEPERF_PERMIT)

TEEPERF_OBJECTS = teeperf_sgx.o teeperf_intel.o
# Behind all objects, and before the SDK's own libraries.
TEEPERF_LDFLAGS = -Wl,--wrap=sgx_ocall $(teeperf-folder)/../lib/x86_64/libteeperf_tee.a

teeperf_%.o: $(teeperf-folder)/teeperf_%.c
	$(CC) $(Enclave_C_Flags) -DTEEPERF_ENCLAVE='"$(TEEPERF_ENCLAVE)"' -c $< -o $@

endif
