//! The hooks: what a hooked program runs twice for each call. Every instruction counts.
//!
//! In order, when the clock is `tick`: is the module on; has the tick moved since this
//! thread last looked; has the address a site; reserve a word; is it within the chunk;
//! write it. Whatever is not so goes to the runtime, `teeperf_rt_event(address, kind,
//! module, frame, stack pointer)`, with nothing done yet. The frame is a number that is alike for all calls
//! from one place at one depth, and for few others: stack pointer and return address together.
//!
//! The reservation is one `xadd` without `lock`, or a restartable sequence: whole for a signal
//! handler on this thread, and no other thread touches the cursor. The value before it holds both the
//! place and whether there was one ([`teeperf_wire::hook::thread::CURSOR`]), so a handler
//! that runs next and changes the chunk cannot make the two disagree. Between
//! reservation and store a handler may run too: its words come behind, and a reader sees
//! a hole until the store.
//!
//! Where the kernel knows of sequences of the thread (rseq(2)), a load and an addition take the place
//! of `xadd`, which is slow on some processors: a thread that is interrupted between the two goes on
//! with the `xadd`, and so even where every instruction is interrupted. The kernel stays told of the
//! sequence, which the runtime keeps, since the module may be unloaded next. It forgets it when it
//! takes the thread off its processor. Where it has, the runtime asks for how long.
//!
//! Thread-local storage is reached by an offset that the runtime left: no relocation that a
//! `dlopen` could be unable to serve, and nothing is touched before the runtime switched the
//! module on, which it does when the storage exists.
//!
//! Lines of a chunk were last written by the recorder, which cleared them, so most of them are in
//! another core's cache: each store asks for the line of a later one. Near the chunk's end that is
//! one of the next chunk, where it is of no use, and it never faults (Intel SDM 2B, PREFETCHW).
//!
//! Where calls are summed, the tick has moved as far as the trace is concerned. Then: has it moved since the
//! thread's tree last saw it; is this no child of a fork, and recording not paused by the program; is all simple;
//! what node is guessed from the function and the frame; is it the function's, below the node on top; count, and
//! stand there. Of a return: is it the function's; has its call taken no time, as one before it; stand at its caller.
//!
//! With `cycle`, whether the counter's upper half has changed is looked at behind the reservation: a
//! handler in between may have stamped another. Where it has, the two places become pads.
//!
//! A processor reads its counter while work before that is still under way. Where single short
//! calls are to be timed, it is told to end that first (Intel SDM 2B, RDTSC and LFENCE).
//!
//! Where a filter holds, the module's map says whether the function passes ([`teeperf_wire::filter`]); one that does
//! goes on as without. Where some functions are timed by the counter beside the tick, further bits say which these are, and
//! their events go to the runtime.
//!
//! Where stacks are watched, an event whose stack pointer lies outside of the thread's window goes to the runtime as well.
//!
//! Off is one load and two branches. The `cycle` clock costs more than all
//! else, so its path begins behind a branch.

use core::arch::global_asm;
use teeperf_wire::hook::{FULL, RSEQ_SIGNATURE, STEP, TICK_AHEAD, gate, module, thread};
use teeperf_wire::shared::clock;
use teeperf_wire::tree;
use teeperf_wire::word::{code, escape};

global_asm!(
    super::define!(),
    "
    // `above`: so far above a hook's own return address stands where that would be if the function
    // called it.
    .macro  teeperf_hook name, kind, above, sequence
    .section teeperf_code, \"ax\", @progbits
    .p2align 6
    teeperf_define \\name
    .hidden \\name
    .type   \\name, @function
\\name:
    .cfi_startproc
    mov     rax, qword ptr [rip + teeperf_module + {mode}]
    test    rax, rax
    jns     7f
1:  mov     edx, dword ptr [rip + teeperf_clock + {tick}]
    cmp     edx, dword ptr fs:[rax + {last}]
    jne     10f
    sub     rdi, qword ptr [rip + teeperf_module + {low}]
    cmp     rdi, qword ptr [rip + teeperf_gate + {window}]
    jae     8f
    mov     edx, dword ptr [rip + teeperf_module + {first_word}]
    lea     edx, [rdx + 2 * rdi + \\kind]
    mov     r8, qword ptr fs:[rax + {rseq}]
    test    r8, r8
    jz      4f
    cmp     qword ptr fs:[r8], 0
    je      8f
    mov     rcx, qword ptr [rip + teeperf_module + \\sequence]
    mov     qword ptr fs:[r8], rcx
.Lteeperf_\\name\\()_begins:
    mov     rcx, qword ptr fs:[rax + {cursor}]
    add     qword ptr fs:[rax + {cursor}], {step}
.Lteeperf_\\name\\()_ends:
    test    cx, cx
    js      8f
    shr     rcx, 16
    prefetchw [rcx + {tick_ahead}]
    mov     dword ptr [rcx], edx
    ret

    ud1     edi, dword ptr [rip + {signature}]
.Lteeperf_\\name\\()_abandoned:
4:  mov     ecx, {step}
    xadd    qword ptr fs:[rax + {cursor}], rcx
    test    cx, cx
    js      8f
    shr     rcx, 16
    prefetchw [rcx + {tick_ahead}]
    mov     dword ptr [rcx], edx
    ret

    .p2align 4
10: cmp     rdx, qword ptr fs:[rax + {tree_last}]
    jne     9f
    cmp     qword ptr [rip + teeperf_gate + {window}], 0
    je      9f
    cmp     qword ptr fs:[rax + {tree_apart}], 0
    jne     9f
    .if     \\kind
    mov     ecx, dword ptr fs:[rax + {tree_top}]
    .else
    lea     ecx, [rsp + rsi + \\above]
    add     ecx, edi
    imul    ecx, ecx, {guess_factor}
    shr     ecx, {guess_shift}
    and     ecx, dword ptr fs:[rax + {tree_mask}]
    mov     r8, qword ptr fs:[rax + {tree_guesses}]
    mov     ecx, dword ptr [r8 + 4 * rcx]
    .endif
    cmp     ecx, dword ptr fs:[rax + {tree_nodes}]
    jae     9f
    mov     r8d, ecx
    shl     r8, 6
    add     r8, qword ptr fs:[rax + {tree}]
    cmp     qword ptr [r8 + {node} + {address}], rdi
    jne     9f
    .if     \\kind
    mov     rdx, qword ptr fs:[rax + {tree_now}]
    cmp     qword ptr [r8 + {node} + {entered}], rdx
    jne     9f
    cmp     qword ptr [r8 + {node} + {least}], -1
    jne     9f
    mov     ecx, dword ptr [r8 + {node} + {parent}]
    .else
    mov     edx, dword ptr fs:[rax + {tree_top}]
    cmp     dword ptr [r8 + {node} + {parent}], edx
    jne     9f
    inc     qword ptr [r8 + {node} + {calls}]
    mov     rdx, qword ptr fs:[rax + {tree_now}]
    mov     qword ptr [r8 + {node} + {entered}], rdx
    .endif
    mov     dword ptr fs:[rax + {tree_top}], ecx
    ret

7:  jnz     2f
    ret

    .p2align 4
2:  test    al, {filtered}
    jz      13f
    sub     rdi, qword ptr [rip + teeperf_module + {low}]
    cmp     rdi, qword ptr [rip + teeperf_gate + {window}]
    jae     8f
    mov     edx, edi
    shr     edx, 5
    mov     r8, qword ptr [rip + teeperf_module + {filter}]
    mov     edx, dword ptr [r8 + 4 * rdx]
    bt      edx, edi
    jc      12f
    ret

12: add     rdi, qword ptr [rip + teeperf_module + {low}]
13: test    al, {times}
    jz      14f
    mov     rdx, rdi
    sub     rdx, qword ptr [rip + teeperf_module + {low}]
    cmp     rdx, qword ptr [rip + teeperf_gate + {window}]
    jae     9f
    mov     ecx, edx
    shr     edx, 5
    mov     r8, qword ptr [rip + teeperf_module + {timed}]
    mov     edx, dword ptr [r8 + 4 * rdx]
    bt      edx, ecx
    jc      9f
14: test    al, {stacks}
    jz      15f
    mov     r8, qword ptr [rip + teeperf_module + {tls}]
    mov     rdx, rsp
    sub     rdx, qword ptr fs:[r8 + {stack_low}]
    cmp     rdx, qword ptr fs:[r8 + {stack_size}]
    jae     9f
15: test    al, {ticks}
    jz      11f
    mov     rax, qword ptr [rip + teeperf_module + {tls}]
    jmp     1b

    .p2align 4
11: mov     r8, qword ptr [rip + teeperf_module + {tls}]
    mov     edx, dword ptr [rip + teeperf_clock + {generation}]
    cmp     edx, dword ptr fs:[r8 + {last}]
    jne     9f
    sub     rdi, qword ptr [rip + teeperf_module + {low}]
    cmp     rdi, qword ptr [rip + teeperf_gate + {window}]
    jae     8f
    mov     esi, dword ptr [rip + teeperf_module + {first_word}]
    lea     esi, [rsi + 2 * rdi + \\kind]
    test    al, {ordered}
    jnz     5f
3:  rdtsc
    mov     ecx, 2 * {step}
    xadd    qword ptr fs:[r8 + {cursor}], rcx
    test    cx, cx
    js      8f
    shr     rcx, 16
    cmp     edx, dword ptr fs:[r8 + {last_high}]
    jne     6f
    or      eax, 1
    shl     rax, 32
    or      rax, rsi
    prefetchw [rcx + {cycle_ahead}]
    mov     qword ptr [rcx], rax
    ret

5:  lfence
    jmp     3b

6:  mov     dword ptr [rcx], {pad}
    mov     dword ptr [rcx + 4], {pad}
8:  add     rdi, qword ptr [rip + teeperf_module + {low}]
9:  lea     rcx, [rsp + rsi + \\above]
    lea     r8, [rsp + \\above]
    mov     esi, \\kind
    lea     rdx, [rip + teeperf_module]
    .if     \\above
    jmp     teeperf_late_event
    .else
    jmp     qword ptr [rip + teeperf_rt_event@GOTPCREL]
    .endif
    .cfi_endproc
    .size   \\name, . - \\name
    .endm

    .macro  teeperf_hook_sequence name
    .long   .Lteeperf_\\name\\()_begins - teeperf_hook_sequences
    .long   .Lteeperf_\\name\\()_ends - .Lteeperf_\\name\\()_begins
    .long   .Lteeperf_\\name\\()_abandoned - teeperf_hook_sequences
    .endm

    .weak   teeperf_rt_event
    teeperf_hook __cyg_profile_func_enter, 0, 0, {enter}
    teeperf_hook __cyg_profile_func_exit, 1, 0, {exit}
    teeperf_hook teeperf_late_hook_enter, 0, {late}, {late_enter}
    teeperf_hook teeperf_late_hook_exit, 1, {late}, {late_exit}

    .p2align 2
    .hidden teeperf_hook_sequences
    teeperf_define teeperf_hook_sequences
    .type   teeperf_hook_sequences, @object
teeperf_hook_sequences:
    teeperf_hook_sequence __cyg_profile_func_enter
    teeperf_hook_sequence __cyg_profile_func_exit
    teeperf_hook_sequence teeperf_late_hook_enter
    teeperf_hook_sequence teeperf_late_hook_exit
    .size   teeperf_hook_sequences, . - teeperf_hook_sequences

    // What scopes of teeperf.h call, which are no function's own hooks.
    .hidden teeperf_scope_enter
    .hidden teeperf_scope_exit
    teeperf_define teeperf_scope_enter
    teeperf_define teeperf_scope_exit
    .set    teeperf_scope_enter, __cyg_profile_func_enter
    .set    teeperf_scope_exit, __cyg_profile_func_exit
    .purgem teeperf_hook
    .purgem teeperf_hook_sequence
    .purgem teeperf_define
    .text
    ",
    late = const super::late::KEPT,
    mode = const module::MODE,
    ordered = const module::ORDERED,
    filtered = const module::FILTERED,
    ticks = const module::TICKS,
    times = const module::TIMES,
    stacks = const module::STACKS,
    filter = const module::FILTER,
    timed = const module::TIMED,
    tls = const module::TLS,
    low = const module::LOW,
    first_word = const module::FIRST_WORD,
    window = const gate::WINDOW,
    tick = const clock::TICK,
    generation = const clock::GENERATION,
    last = const thread::LAST,
    last_high = const thread::LAST_HIGH,
    cursor = const thread::CURSOR,
    rseq = const thread::RSEQ,
    enter = const module::HOOK_SEQUENCES[0],
    exit = const module::HOOK_SEQUENCES[1],
    late_enter = const module::HOOK_SEQUENCES[2],
    late_exit = const module::HOOK_SEQUENCES[3],
    stack_low = const thread::STACK_LOW,
    stack_size = const thread::STACK_SIZE,
    tree_last = const thread::TREE_LAST,
    tree = const thread::TREE,
    tree_guesses = const thread::TREE_GUESSES,
    tree_mask = const thread::TREE_MASK,
    tree_apart = const thread::TREE_APART,
    tree_nodes = const thread::TREE_NODES,
    tree_now = const thread::TREE_NOW,
    tree_top = const thread::TREE_TOP,
    guess_factor = const tree::GUESS_FACTOR as i32,
    guess_shift = const tree::GUESS_SHIFT,
    node = const tree::NODE,
    parent = const tree::node::PARENT,
    address = const tree::node::ADDRESS,
    calls = const tree::node::CALLS,
    least = const tree::node::LEAST,
    entered = const tree::node::ENTERED,
    signature = const RSEQ_SIGNATURE,
    step = const STEP,
    pad = const escape(code::PAD, 0),
    tick_ahead = const TICK_AHEAD,
    cycle_ahead = const CYCLE_AHEAD,
);

/// As [`TICK_AHEAD`], for the words of a counter: they are twice as long, and come several times as
/// late.
const CYCLE_AHEAD: usize = 1024;

// The sign of the cursor's low half is the test for a full chunk.
const _: () = assert!(FULL == 0x8000 && STEP < 1 << 31);

// Nodes and guesses are scaled by shifts.
const _: () = assert!(tree::NODE == 1 << 6 && tree::GUESS == 4);
