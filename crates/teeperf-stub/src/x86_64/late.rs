//! The stub's half of late hooks ([`teeperf_wire::hook`]): they call it. The function's address is
//! in r11, and its return address above that of the hook. All registers but r11 and the flags come
//! back as they were.
//!
//! Where nothing is to be done but to write a word, to leave a function out that a filter has not,
//! or to see that the stack is the thread's own, that is done here, as other hooks do it
//! (`hooks.rs`). Else, and before the runtime knows of the module, registers are kept and a hook as
//! compilers call it does the rest. That one's way to the runtime keeps the vector registers: the
//! runtime is Rust.
//!
//! The hook compared the gate's word with [`gate::LATE_OFF`], and the flags still say whether it was
//! less, which is [`gate::LATE_OUT`]. The word is looked at but once, so it cannot change in between.
//!
//! The kernel stays told of the restartable sequence, which lies in the runtime's memory, and forgets
//! it when it takes the thread off its processor. Where it has, the runtime asks for how long. The
//! sequence begins right behind the store that tells of it: the kernel forgets it where a thread is
//! interrupted in between.

use core::arch::global_asm;
use teeperf_wire::hook::{FULL, RSEQ_SIGNATURE, STEP, TICK_AHEAD, gate, module, thread};
use teeperf_wire::shared::clock;

global_asm!(
    super::define!(),
    "
    .weak   teeperf_rt_event
    .macro  teeperf_late name, kind, sequence, hook
    .p2align 6
    teeperf_define \\name
    .hidden \\name
    .type   \\name, @function
\\name:
    .cfi_startproc
    jb      7f
    mov     qword ptr [rsp - 16], rcx
    mov     qword ptr [rsp - 8], rax
1:  mov     rax, qword ptr [rip + teeperf_module + {tls}]
    mov     ecx, dword ptr [rip + teeperf_clock + {tick}]
    cmp     ecx, dword ptr fs:[rax + {last}]
    jne     6f
    mov     rcx, qword ptr fs:[rax + {rseq}]
    test    rcx, rcx
    jz      4f
    cmp     qword ptr fs:[rcx], 0
    je      6f
    mov     rax, qword ptr [rip + teeperf_module + \\sequence]
    mov     qword ptr fs:[rcx], rax
.Lteeperf_\\name\\()_begins:
    mov     rax, qword ptr [rip + teeperf_module + {tls}]
    mov     rcx, qword ptr fs:[rax + {cursor}]
    add     qword ptr fs:[rax + {cursor}], {step}
.Lteeperf_\\name\\()_ends:
    test    cx, cx
    js      6f
    mov     eax, dword ptr [rip + teeperf_module + {word}]
    lea     r11d, [rax + 2 * r11 + \\kind]
    shr     rcx, 16
    prefetchw [rcx + {ahead}]
    mov     dword ptr [rcx], r11d
    mov     rax, qword ptr [rsp - 8]
    mov     rcx, qword ptr [rsp - 16]
    ret

    ud1     edi, dword ptr [rip + {signature}]
.Lteeperf_\\name\\()_abandoned:
4:  mov     rax, qword ptr [rip + teeperf_module + {tls}]
    mov     ecx, {step}
    xadd    qword ptr fs:[rax + {cursor}], rcx
    jmp     .Lteeperf_\\name\\()_ends

7:  mov     qword ptr [rsp - 16], rcx
    mov     qword ptr [rsp - 8], rax
    mov     eax, dword ptr [rip + teeperf_module + {mode}]
    cmp     eax, {watched}
    je      9f
    cmp     eax, {filtered}
    jne     6f
    mov     rcx, r11
    sub     rcx, qword ptr [rip + teeperf_module + {low}]
    cmp     rcx, qword ptr [rip + teeperf_gate + {window}]
    jae     6f
    mov     qword ptr [rsp - 24], rdx
    mov     rdx, qword ptr [rip + teeperf_module + {filter}]
    mov     eax, ecx
    shr     eax, 5
    mov     eax, dword ptr [rdx + 4 * rax]
    mov     rdx, qword ptr [rsp - 24]
    bt      eax, ecx
    jc      1b
    mov     rax, qword ptr [rsp - 8]
    mov     rcx, qword ptr [rsp - 16]
    ret

9:  cmp     qword ptr [rip + teeperf_gate + {window}], 0
    je      6f
    mov     rax, qword ptr [rip + teeperf_module + {tls}]
    mov     rcx, rsp
    sub     rcx, qword ptr fs:[rax + {stack_low}]
    cmp     rcx, qword ptr fs:[rax + {stack_size}]
    jb      1b
6:  mov     rax, qword ptr [rsp - 8]
    mov     rcx, qword ptr [rsp - 16]
    jmp     \\hook
    .cfi_endproc
    .size   \\name, . - \\name
    .endm

    // The long way round: a hook as compilers call it.
    .macro  teeperf_late_out name, hook
    .type   \\name, @function
\\name:
    .cfi_startproc
    .irp    register, rax, rcx, rdx, rsi, rdi, r8, r9, r10
    push    \\register
    .cfi_adjust_cfa_offset 8
    .endr
    mov     rdi, r11
    mov     rsi, qword ptr [rsp + {kept}]
    call    \\hook
    .irp    register, r10, r9, r8, rdi, rsi, rdx, rcx, rax
    pop     \\register
    .cfi_adjust_cfa_offset -8
    .endr
    ret
    .cfi_endproc
    .size   \\name, . - \\name
    .endm

    .macro  teeperf_late_sequence name
    .long   .Lteeperf_\\name\\()_begins - teeperf_late_sequences
    .long   .Lteeperf_\\name\\()_ends - .Lteeperf_\\name\\()_begins
    .long   .Lteeperf_\\name\\()_abandoned - teeperf_late_sequences
    .endm

    .section teeperf_code, \"ax\", @progbits
    teeperf_late teeperf_late_enter, 0, {enter}, teeperf_late_out_enter
    teeperf_late teeperf_late_exit, 1, {exit}, teeperf_late_out_exit
    teeperf_late_out teeperf_late_out_enter, teeperf_late_hook_enter
    teeperf_late_out teeperf_late_out_exit, teeperf_late_hook_exit

    .p2align 2
    .hidden teeperf_late_sequences
    teeperf_define teeperf_late_sequences
    .type   teeperf_late_sequences, @object
teeperf_late_sequences:
    teeperf_late_sequence teeperf_late_enter
    teeperf_late_sequence teeperf_late_exit
    .size   teeperf_late_sequences, . - teeperf_late_sequences

    .p2align 4
    teeperf_define teeperf_late_event
    .hidden teeperf_late_event
    .type   teeperf_late_event, @function
teeperf_late_event:
    .cfi_startproc
    push    rbp
    .cfi_def_cfa_offset 16
    .cfi_offset rbp, -16
    mov     rbp, rsp
    .cfi_def_cfa_register rbp
    sub     rsp, 256
    and     rsp, -16
    .irp    n, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15
    movaps  xmmword ptr [rsp + 16 * \\n], xmm\\n
    .endr
    call    qword ptr [rip + teeperf_rt_event@GOTPCREL]
    .irp    n, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15
    movaps  xmm\\n, xmmword ptr [rsp + 16 * \\n]
    .endr
    leave
    .cfi_def_cfa rsp, 8
    .cfi_restore rbp
    ret
    .cfi_endproc
    .size   teeperf_late_event, . - teeperf_late_event
    .purgem teeperf_late
    .purgem teeperf_late_out
    .purgem teeperf_late_sequence
    .purgem teeperf_define
    .text
    ",
    kept = const KEPT,
    mode = const module::MODE,
    filtered = const module::TICKS | module::FILTERED,
    watched = const module::TICKS | module::STACKS,
    low = const module::LOW,
    window = const gate::WINDOW,
    filter = const module::FILTER,
    tls = const module::TLS,
    word = const module::LATE_WORD,
    enter = const module::ENTER_SEQUENCE,
    exit = const module::EXIT_SEQUENCE,
    tick = const clock::TICK,
    last = const thread::LAST,
    rseq = const thread::RSEQ,
    cursor = const thread::CURSOR,
    stack_low = const thread::STACK_LOW,
    stack_size = const thread::STACK_SIZE,
    step = const STEP,
    ahead = const TICK_AHEAD,
    signature = const RSEQ_SIGNATURE,
);

/// Bytes on the stack of the function's return address to that of the hook: eight registers, and
/// where the tail goes on.
pub(super) const KEPT: usize = 9 * 8;

// One comparison tells all from one another.
const _: () = assert!(gate::LATE_OUT == 0 && gate::LATE_OFF == 1 && gate::LATE_ON > 1);

// The sign of the cursor's low half is the test for a full chunk.
const _: () = assert!(FULL == 0x8000 && STEP < 1 << 31);
