//! The module's block, gate and clock, and the functions that announce and retire it.
//!
//! Gate and clock fill a page of zeroed data each, so that the kernel can be asked to wipe the one
//! on fork, and to put another in the other's place. `.init_array.00000` runs before every other constructor of the module, its
//! counterpart in `.fini_array` after every other destructor. The ELF header is found
//! through the global offset table, because a linker that does not load the header leaves
//! the symbol undefined, which is 0 there.

use core::arch::global_asm;
use teeperf_wire::hook::{VERSION, gate, module};
use teeperf_wire::shared::clock;

global_asm!(
    super::define!(),
    "
    .section .bss.teeperf_gate, \"aw\", @nobits
    .p2align 12
    teeperf_define teeperf_gate
    .hidden teeperf_gate
    .type   teeperf_gate, @object
    .size   teeperf_gate, {gate_size}
teeperf_gate:
    .zero   {gate_size}

    teeperf_define teeperf_clock
    .hidden teeperf_clock
    .type   teeperf_clock, @object
    .size   teeperf_clock, {clock_size}
teeperf_clock:
    .zero   {clock_size}

    .section .bss.teeperf_module, \"aw\", @nobits
    .p2align 6
    teeperf_define teeperf_module
    .hidden teeperf_module
    .type   teeperf_module, @object
    .size   teeperf_module, {module_size}
teeperf_module:
    .zero   {module_size}

    .section .text.teeperf_module, \"ax\", @progbits
    .weak   teeperf_rt_register
    .weak   teeperf_rt_unregister
    .hidden __cyg_profile_func_enter
    .weak   __ehdr_start
    .hidden __ehdr_start
    .weak   __start_teeperf_code
    .weak   __stop_teeperf_code
    .hidden __start_teeperf_code
    .hidden __stop_teeperf_code
    .type   teeperf_announce, @function
teeperf_announce:
    .cfi_startproc
    mov     dword ptr [rip + teeperf_gate + {late}], {off}
    mov     rax, qword ptr [rip + teeperf_rt_register@GOTPCREL]
    test    rax, rax
    jz      1f
    lea     rdi, [rip + teeperf_module]
    mov     dword ptr [rdi + {version}], {our_version}
    lea     rcx, [rip + __cyg_profile_func_enter]
    sub     rcx, rdi
    mov     dword ptr [rdi + {hook}], ecx
    lea     rcx, [rip + teeperf_gate]
    mov     qword ptr [rdi + {gate}], rcx
    lea     rcx, [rip + teeperf_clock]
    mov     qword ptr [rdi + {clock}], rcx
    lea     rcx, [rip + __start_teeperf_code]
    mov     qword ptr [rdi + {code_start}], rcx
    lea     rcx, [rip + __stop_teeperf_code]
    mov     qword ptr [rdi + {code_end}], rcx
    lea     rcx, [rip + teeperf_late_sequences]
    mov     qword ptr [rdi + {sequences}], rcx
    lea     rcx, [rip + teeperf_hook_sequences]
    mov     qword ptr [rdi + {hook_table}], rcx
    mov     rcx, qword ptr [rip + __ehdr_start@GOTPCREL]
    mov     qword ptr [rdi + {header}], rcx
    jmp     rax
1:  ret
    .cfi_endproc
    .size   teeperf_announce, . - teeperf_announce

    .type   teeperf_retire, @function
teeperf_retire:
    .cfi_startproc
    mov     rax, qword ptr [rip + teeperf_rt_unregister@GOTPCREL]
    test    rax, rax
    jz      1f
    lea     rdi, [rip + teeperf_module]
    jmp     rax
1:  ret
    .cfi_endproc
    .size   teeperf_retire, . - teeperf_retire

    .section .init_array.00000, \"aw\", @init_array
    .p2align 3
    .quad   teeperf_announce
    .section .fini_array.00000, \"aw\", @fini_array
    .p2align 3
    .quad   teeperf_retire
    .purgem teeperf_define
    .text
    ",
    late = const gate::LATE,
    off = const gate::LATE_OFF,
    gate_size = const gate::SIZE,
    clock_size = const clock::SIZE,
    module_size = const module::SIZE,
    version = const module::VERSION,
    our_version = const VERSION,
    hook = const module::HOOK,
    gate = const module::GATE,
    clock = const module::CLOCK,
    header = const module::HEADER,
    code_start = const module::CODE_START,
    code_end = const module::CODE_END,
    sequences = const module::SEQUENCES,
    hook_table = const module::HOOK_TABLE,
);
