//! x86-64. `mcount` comes behind a function's prologue, which has set up a frame; `__fentry__` (-mfentry) before
//! it. Both may be reached through a table of the linker's, so `r11` is free, and nothing else is.

use teeperf_tally::arcs::{SPREAD, layout};

// The thread's table.
#[cfg(feature = "threads")]
macro_rules! arcs_here {
    () => {
        "
    .macro  teeperf_arcs_here
    mov     r11, qword ptr [rip + teeperf_arcs@GOTTPOFF]
    add     r11, qword ptr fs:[0]
    .endm
        "
    };
}
#[cfg(not(feature = "threads"))]
macro_rules! arcs_here {
    () => {
        "
    .macro  teeperf_arcs_here
    lea     r11, [rip + teeperf_arcs]
    .endm
        "
    };
}

// Leads away where the table's clock may be gone. May change `rcx`.
#[cfg(feature = "threads")]
macro_rules! clock_or {
    () => {
        "
    .macro  teeperf_clock_or where
    mov     ecx, dword ptr [rip + teeperf_tee_epoch]
    cmp     ecx, dword ptr [r11 + {epoch}]
    jne     \\where
    .endm
        "
    };
}

// `rdx` is where the call came from, `rcx` where it led; what they were, and `rax`, lies on the stack.
entries!(
    [arcs_here!(), clock_or!()],
    "
    .macro  teeperf_count
    teeperf_arcs_here
    lea     eax, [rdx + 4 * rcx]
    imul    eax, eax, {spread}
    imul    rax, qword ptr [r11 + {places}]
    shr     rax, 32
    lea     rax, [rax + 2 * rax]
    shl     rax, 3
    add     rax, qword ptr [r11 + {first}]
2:  cmp     rax, qword ptr [r11 + {end}]
    jae     teeperf_count_slowly
    cmp     rdx, qword ptr [rax + {from}]
    jne     3f
    cmp     rcx, qword ptr [rax + {to}]
    jne     3f
    teeperf_clock_or teeperf_count_slowly
    mov     rcx, qword ptr [r11 + {watched}]
    mov     ecx, dword ptr [rcx]
    cmp     ecx, dword ptr [r11 + {last}]
    jne     teeperf_count_slowly
    mov     qword ptr [r11 + {latest}], rax
    add     qword ptr [rax + {count}], 1
    pop     rdx
    pop     rcx
    pop     rax
    ret
3:  cmp     qword ptr [rax + {to}], 0
    je      teeperf_count_slowly
    add     rax, {place}
    jmp     2b
    .endm

    .section .text.teeperf_mcount, \"ax\", @progbits
    .p2align 4
    .globl  __fentry__
    .hidden __fentry__
    .type   __fentry__, @function
__fentry__:
    endbr64
    push    rax
    push    rcx
    push    rdx
    mov     rcx, qword ptr [rsp + 24]
    mov     rdx, qword ptr [rsp + 32]
    // A nested function's static chain may lie there, and the return address behind it.
    cmp     rdx, r10
    cmove   rdx, qword ptr [rsp + 40]
    teeperf_count
    .size   __fentry__, . - __fentry__

    .p2align 4
    .globl  mcount
    .globl  _mcount
    .hidden mcount
    .hidden _mcount
    .type   mcount, @function
    .type   _mcount, @function
mcount:
_mcount:
    endbr64
    push    rax
    push    rcx
    push    rdx
    mov     rcx, qword ptr [rsp + 24]
    mov     rdx, qword ptr [rbp + 8]
    teeperf_count
    .size   mcount, . - mcount
    .size   _mcount, . - _mcount

    .type   teeperf_count_slowly, @function
teeperf_count_slowly:
    push    rsi
    push    rdi
    push    r8
    push    r9
    push    r10
    push    rbp
    mov     rbp, rsp
    mov     rdi, r11
    mov     rsi, rdx
    mov     rdx, qword ptr [rbp + 72]
    sub     rsp, 128
    and     rsp, -16
    movups  xmmword ptr [rsp], xmm0
    movups  xmmword ptr [rsp + 16], xmm1
    movups  xmmword ptr [rsp + 32], xmm2
    movups  xmmword ptr [rsp + 48], xmm3
    movups  xmmword ptr [rsp + 64], xmm4
    movups  xmmword ptr [rsp + 80], xmm5
    movups  xmmword ptr [rsp + 96], xmm6
    movups  xmmword ptr [rsp + 112], xmm7
    call    teeperf_tee_arc
    movups  xmm0, xmmword ptr [rsp]
    movups  xmm1, xmmword ptr [rsp + 16]
    movups  xmm2, xmmword ptr [rsp + 32]
    movups  xmm3, xmmword ptr [rsp + 48]
    movups  xmm4, xmmword ptr [rsp + 64]
    movups  xmm5, xmmword ptr [rsp + 80]
    movups  xmm6, xmmword ptr [rsp + 96]
    movups  xmm7, xmmword ptr [rsp + 112]
    mov     rsp, rbp
    pop     rbp
    pop     r10
    pop     r9
    pop     r8
    pop     rdi
    pop     rsi
    pop     rdx
    pop     rcx
    pop     rax
    ret
    .size   teeperf_count_slowly, . - teeperf_count_slowly
    .text
    ",
    spread = const SPREAD.cast_signed(),
);

const _: () = assert!(layout::PLACE == 24);
