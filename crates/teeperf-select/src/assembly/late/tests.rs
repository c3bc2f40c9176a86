use super::super::{Error, Options};
use super::{Hooked, Late, insert};
use crate::Selection;
use proptest::prelude::*;

const PLAIN: Late = Late { counts_itself: false, with_library: false };

fn hooked(text: &str, selection: &str, late: Late) -> Result<Hooked, Error> {
    let selection: Selection = selection.parse().unwrap();
    let options = Options { selection: &selection, drop_line_info: false, paths: &|_| Vec::new() };
    insert(text.as_bytes(), &options, late)
}

/// The code with hooks, up to what an object brings for links without the stub. Hooks are written
/// short:
/// `?label` for the comparison and the branch.
fn short(text: &str) -> String {
    let text = String::from_utf8(hooked(text, "", PLAIN).unwrap().text).unwrap();
    let own = text.split("\t.section\t.data.teeperf_absent").next().unwrap();
    own.replace("\tcmpl\t$1, teeperf_gate+8(%rip)\n\tjne\t", "?").replace('\t', " ")
}

fn function(name: &str, code: &str) -> String {
    format!(
        "\t.text\n\t.type\t{name}, @function\n{name}:\n\t.cfi_startproc\n1:\tcall\t__fentry__\n{code}\n\t.cfi_endproc\n\
         \t.size\t{name}, .-{name}\n"
    )
}

/// The function's code between its entry hook and its tails.
fn body(code: &str) -> String {
    let text = short(&function("f", code));
    let (_, behind) = text.split_once(".Lteeperf_g0:\n").unwrap();
    behind.split(" .cfi_def_cfa 7, 8").next().unwrap().trim().to_owned()
}

#[test]
fn a_function_has_hooks_at_its_entry_and_at_each_return() {
    assert_eq!(
        short(&function("f", "\tjne\t.L2\n\tret\n.L2:\n\trep ret")),
        " .text\n .type f, @function\nf:\n.Lteeperf_f0:\n .cfi_startproc\n?.Lteeperf_e0\n.Lteeperf_g0:\n \
         jne .L2\n?.Lteeperf_x0_0\n ret\n.L2:\n?.Lteeperf_x0_0\n rep ret\n .cfi_def_cfa 7, 8\n\
         .Lteeperf_e0:\n leaq .Lteeperf_f0(%rip), %r11\n call teeperf_late_enter\n jmp .Lteeperf_g0\n\
         .Lteeperf_x0_0:\n leaq .Lteeperf_f0(%rip), %r11\n call teeperf_late_exit\n ret\n .cfi_endproc\n .size f, .-f\n"
    );
}

/// Guards: samples at a loop's beginning taken for those of the hook in front of it.
#[test]
fn a_loop_begins_apart_from_the_entrys_hook() {
    let code = |label, target| format!("{label}:\n\tdecl\t%edi\n\tjne\t{target}\n\tud2");
    assert!(body(&code(".L2", ".L2")).starts_with("nop\n.L2:"));
    assert!(body(&code(".LVL2", ".L3")).starts_with(".LVL2:"));
}

#[test]
fn jumps_to_other_functions_are_exits() {
    for (code, expected) in [
        ("\tjmp\tg", "?.Lteeperf_x0_0\n jmp g"),
        ("\tjmp\tg@PLT", "?.Lteeperf_x0_0\n jmp g@PLT"),
        ("\tjmp\t*g@GOTPCREL(%rip)", "?.Lteeperf_x0_0\n jmp *g@GOTPCREL(%rip)"),
        ("\tjmp\t*%rax", "?.Lteeperf_x0_0\n jmp *%rax"),
        ("\tjmp\t*16(%rdi)", "?.Lteeperf_x0_0\n jmp *16(%rdi)"),
        ("\tjmp\tf", "?.Lteeperf_x0_0\n jmp f"),
        ("\tjmp\t__x86_return_thunk", "?.Lteeperf_x0_0\n jmp __x86_return_thunk"),
        ("\tjmp\t.L1\n.L1:\n\tud2", "jmp .L1\n.L1:\n ud2"),
        ("\tje\tg", "jne .Lteeperf_b5\n?.Lteeperf_x0_0\n jmp g\n.Lteeperf_b5:"),
        // With its frame still there, a function jumps nowhere but within itself.
        ("\t.cfi_def_cfa_offset 16\n\tjmp\t*%rax", ".cfi_def_cfa_offset 16\n jmp *%rax"),
    ] {
        assert_eq!(body(code), expected, "{code}");
    }
}

#[test]
fn jumps_by_table_stay() {
    let table = "\t.section\t.rodata\n.L4:\n\t.long\t.L3-.L4\n\t.text\n.L3:\n\tud2";
    let code = format!(
        "\tleaq\t.L4(%rip), %rdx\n\tmovslq\t(%rdx,%rdi,4), %rax\n\taddq\t%rdx, %rax\n\tjmp\t*%rax\n{table}"
    );
    assert!(!body(&code).contains('?'), "{}", body(&code));
    // Another one beside it does not.
    let both = code + "\n\tjmp\t*%rsi";
    assert!(body(&both).ends_with("?.Lteeperf_x0_0\n jmp *%rsi"), "{}", body(&both));
}

#[test]
fn computed_gotos_stay() {
    let table = "\t.section\t.data.rel.ro.local\nlabels.0:\n\t.quad\t.L3\n\t.text\n.L3:\n\tud2";
    let code = format!("\tmovq\t(%rdi), %rax\n\tjmp\t*%rax\n{table}");
    let text = short(&function("f", &code));
    // Where it leads is compared with the function's code.
    let tail = ".Lteeperf_x0_0:\n leaq .Lteeperf_f0(%rip), %r11\n cmpq %r11, %rax\n \
                jbe .Lteeperf_o0_0_0\n leaq .Lteeperf_z0(%rip), %r11\n cmpq %r11, %rax\n \
                jb .Lteeperf_s0_0\n.Lteeperf_o0_0_0:\n cmpl $1, teeperf_gate+8(%rip)\n \
                je .Lteeperf_s0_0\n leaq .Lteeperf_f0(%rip), %r11\n call teeperf_late_exit\n\
                .Lteeperf_s0_0:\n jmp *%rax\n";
    assert!(text.contains(tail), "{text}");
    assert!(text.contains("?.Lteeperf_x0_0\n jmp *%rax\n"), "{text}");
}

#[test]
fn computed_gotos_stay_where_r11_is_in_use() {
    let table = "\t.section\t.data.rel.ro.local\nlabels.0:\n\t.quad\t.L3\n\t.text\n.L3:\n\tud2";
    let code = format!("\tmovq\t(%rdi), %r11\n\tjmp\t*%r11\n{table}");
    assert!(!body(&code).contains('?'), "{}", body(&code));
}

/// Guards: jumps to labels that the program keeps, taken for exits because another jump uses the
/// array that they come from.
#[test]
fn labels_of_an_array_that_one_jump_uses_are_taken() {
    let code = |array: &str| {
        format!(
            "\tmovq\t{array}(,%rdi,8), %rax\n\tjmp\t*%rax\n\t.section\t.data.rel.ro.local\n\
             {array}:\n\t.quad\t.L3\n\t.text\n.L3:\n\tjmp\t*(%rsi)"
        )
    };
    let is_compared = |array| short(&function("f", &code(array))).contains("cmpq %r11, (%rsi)");
    assert!(is_compared("labels.0"));
    // Nobody but the compiler's own jump reads its table.
    assert!(!is_compared(".L4"));
}

/// Guards: exits to other functions that are missed in an interpreter.
#[test]
fn a_jump_without_the_frame_that_labels_have_is_an_exit() {
    let code = |directive: &str| {
        format!(
            "\tjmp\t*%rsi\n\tmovq\t$.L3, (%rdi)\n\tmovq\t%rax, %r11\n.L3:\n\t{directive}\n\tud2"
        )
    };
    let framed = body(&code(".cfi_def_cfa_offset 16"));
    assert!(framed.starts_with("?.Lteeperf_x0_0\n jmp *%rsi"), "{framed}");
    assert!(!body(&code(".cfi_def_cfa_offset 8")).contains('?'));
}

#[test]
fn sections_of_the_programs_own_hold_code_and_labels() {
    // gcc writes a section's flags the first time alone.
    let flags = "\t.section\tvm,\"ax\",@progbits\n\tret\n";
    let table = "\t.section\tvmtable,\"aw\"\nlabels.0:\n\t.quad\t.L3\n";
    let own = |name: &str| {
        let code = function(name, &format!("\tjmp\t*%rsi\n.L3:\n\tud2\n{table}\t.section\tvm"));
        code.replacen("\t.text\n", "\t.section\tvm\n", 1)
    };
    let text = short(&(flags.to_owned() + &own("f")));
    assert!(text.contains("cmpq %r11, %rsi"), "{text}");
    let of_tools = own("f").replace("vmtable", "__patchable_function_entries");
    assert!(!short(&(flags.to_owned() + &of_tools)).contains("cmpq %r11, %rsi"));
}

/// Guards: code of one function between that of another, and its end in another section.
#[test]
fn tails_stand_in_the_section_of_their_code() {
    let text = short(
        "\t.text\n\t.type\tf, @function\nf:\n1:\tcall\t__fentry__\n\tjs\t.L5\n\tret\n\
         \t.section\t.text.unlikely,\"ax\",@progbits\n\t.type\tf.cold, @function\nf.cold:\n.L5:\n\
         \tjmp\tg\n\t.text\n\t.size\tf, .-f\n\t.section\t.text.unlikely\n\t.size\tf.cold, .-f.cold\n",
    );
    let at = |part: &str| text.find(part).unwrap_or_else(|| panic!("{part} in {text}"));
    assert!(at(".Lteeperf_x0_0:") < at(" .section .text.unlikely"), "{text}");
    assert!(at(".Lteeperf_x1_0:") < text.rfind(" .text\n").unwrap(), "{text}");
}

#[test]
fn r11_is_kept_where_a_jump_needs_it() {
    let text = short(&function("f", "\tjmp\t*%r11"));
    assert!(
        text.contains(
            ".Lteeperf_x0_0:\n pushq %r11\n .cfi_adjust_cfa_offset 8\n leaq .Lteeperf_f0(%rip), %r11\n \
             call teeperf_late_exit\n popq %r11\n .cfi_adjust_cfa_offset -8\n jmp *%r11\n"
        ),
        "{text}"
    );
}

#[test]
fn r11_is_kept_where_some_function_has_an_argument_in_it() {
    let text = short(&function("f", "\taddq\t%r11, %rax\n\tret"));
    assert!(text.contains(".Lteeperf_e0:\n pushq %r11\n"), "{text}");
    // clang's `preserve_none` passes arguments in those that functions keep, and then in r11.
    let text = short(&function("f", "\taddq\t%r13, %rax\n\tjmp\tg"));
    assert!(text.contains(".Lteeperf_e0:\n pushq %r11\n"), "{text}");
    let kept = "\tpushq\t%r12\n\tmovq\t%r13, -8(%rbp)\n\taddq\t%r12, %r13\n\tret";
    for code in
        [kept, "\txorl\t%r11d, %r11d\n\tret", "\tmovq\t(%rdi), %r11\n\taddq\t%r11, %rax\n\tret"]
    {
        assert!(!short(&function("f", code)).contains("pushq %r11"), "{code}");
    }
}

#[test]
fn a_cold_part_is_its_functions() {
    let cold = "\t.section\t.text.unlikely,\"ax\",@progbits\n\t.cfi_startproc\n\t.type\tf.cold, @function\nf.cold:\n.L5:\n\
        \t.cfi_def_cfa_offset 16\n\t.cfi_offset 3, -16\n\tcall\tg\n\tpopq\t%rbx\n\t.cfi_def_cfa_offset 8\n\tret\n\t.cfi_endproc\n";
    let text = short(&(function("f", "\tje\t.L5\n\tret") + cold));
    assert!(text.contains("g0:\n je .L5\n?.Lteeperf_x0_0\n ret\n"), "{text}");
    assert!(text.contains(" popq %rbx\n .cfi_def_cfa_offset 8\n?.Lteeperf_x1_0\n ret\n .cfi_def_cfa 7, 8\n .cfi_restore 3\n.Lteeperf_x1_0:\n leaq .Lteeperf_f0(%rip), %r11\n"), "{text}");
    // One that is called is a function.
    let text = short(&(function("f", "\tcall\tf.cold\n\tret") + cold));
    assert!(text.contains(" .cfi_def_cfa_offset 8\n ret\n"), "{text}");
}

#[test]
fn parts_that_clang_has_the_linker_place_are_their_functions() {
    for name in ["f.cold", "f.__part.3", "f.eh"] {
        let part = format!(
            "\t.section\t.text.split.f,\"ax\",@progbits\n{name}:\n\t.cfi_startproc\n\tpopq\t%rax\n\tret\n.LBB_END0_1:\n\
             \t.size\t{name}, .LBB_END0_1-{name}\n\t.cfi_endproc\n"
        );
        let text = short(&(function("f", &format!("\tjmp\t{name}")) + &part));
        assert!(text.contains(&format!("g0:\n jmp {name}\n")), "{text}");
        assert!(text.contains(" popq %rax\n?.Lteeperf_x1_0\n ret\n"), "{text}");
        assert!(text.contains(&format!(" .long .Lteeperf_f0-.\n{name}:\n")), "{text}");
    }
}

#[test]
fn what_has_no_mark_has_no_hooks() {
    let other = "\t.type\tg, @function\ng:\n\tret\n\t.size\tg, .-g\n";
    assert_eq!(hooked(other, "", PLAIN).unwrap().text, other.as_bytes());
    // A naked function's code is by hand.
    let naked = function("f", "#APP\n\tret\n#NO_APP\n\tud2");
    assert!(!short(&naked).contains('?') && !short(&naked).contains("__fentry__"));
}

/// Guards: a naked function with a value in r11 lost it where compilers count and check.
#[test]
fn naked_functions_with_counters_have_no_hooks() {
    let by_hand = "#APP\n# 3 \"n.c\" 1\n\tadd %r11, %rax; ret\n# 0 \"\" 2\n#NO_APP";
    for (before, behind) in [
        // gcc: -fstack-protector-all, --coverage, -fprofile-generate.
        (
            "\tmovq\t%fs:40, %rax\n\tmovq\t%rax, 8(%rsp)\n\txorl\t%eax, %eax",
            "\tmovq\t8(%rsp), %rax\n\tsubq\t%fs:40, %rax\n\tjne\t.L4\n\tud2\n.L4:\n\tcall\t__stack_chk_fail@PLT",
        ),
        ("\tlock addq\t$1, __gcov0.f(%rip)", "\taddq\t$1, 8+__gcov0.f(%rip)\n\tud2"),
        ("\tleaq\tf(%rip), %rsi\n\tcall\t__gcov_indirect_call_profiler_v4@PLT", "\tnop\n\tud2"),
        // clang: -fprofile-generate, --coverage.
        ("\taddq\t$1, .L__profc_f(%rip)", ""),
        ("\tincq\t__llvm_gcov_ctr(%rip)", ""),
    ] {
        let has_hooks =
            |code: &[&str]| short(&function("f", &code.join("\n"))).contains("teeperf_late_enter");
        assert!(!has_hooks(&[before, by_hand, behind]), "{before}");
        // A function that leaves by itself, has a frame, or has no assembly that leaves.
        assert!(has_hooks(&[before, by_hand, behind, "\tret"]), "{before}");
        assert!(has_hooks(&[before, by_hand, behind, "\tjmp\tg"]), "{before}");
        assert!(has_hooks(&["\tpushq\t%rbx", before, by_hand, behind]), "{before}");
        assert!(has_hooks(&[before, behind]), "{before}");
    }
    // One that never comes back, without counters.
    assert!(short(&function("f", &format!("\tmovl\t$1, %edi\n{by_hand}\n\tud2"))).contains('?'));
}

#[test]
fn hooks_are_put_in_once() {
    let once = hooked(&function("f", "\tret"), "", PLAIN).unwrap().text;
    let text = String::from_utf8(once.clone()).unwrap();
    assert_eq!(hooked(&text, "", PLAIN).unwrap().text, once);
}

#[test]
fn some_functions_are_wanted() {
    let text = function("f", "\tret") + &function("g", "\tnop\n\tret");
    for (selection, wanted) in
        [("only g", [false, true]), ("exclude g", [true, false]), ("min-size 2", [false, true])]
    {
        let hooked = hooked(&text, selection, PLAIN).unwrap();
        let out = String::from_utf8(hooked.text).unwrap();
        let has = [0, 1].map(|at| out.contains(&format!(".Lteeperf_f{at}:")));
        assert_eq!(has, wanted, "{selection}: {out}");
        assert!(!out.contains("__fentry__"));
    }
}

#[test]
fn the_standard_library_is_left_out() {
    for (name, is_hooked) in [
        ("_ZNSt6vectorIiSaIiEE9push_backEOi", false),
        ("_ZNKSt6vectorIiSaIiEE4sizeEv", false),
        ("_ZSt4sortIPiEvT_S1_", false),
        ("_ZNSsC1Ev", false),
        ("_ZNRSt8optionalIiEdeEv", false),
        ("_ZNKRSt8optionalIiEdeEv", false),
        ("_ZNOSt8optionalIiEdeEv", false),
        ("_ZZNSt8__detail3runEvENKUlvE_clEv", false),
        ("_ZZ4mainENKUlvE_clEv", true),
        ("_ZN9__gnu_cxx13new_allocatorIiE8allocateEm", false),
        ("_Z3addSt6vectorIiSaIiEE", true),
        ("_ZN5Shape4areaEv", true),
        ("_ZN2Sa4areaEv", true),
    ] {
        assert_eq!(short(&function(name, "\tret")).contains('?'), is_hooked, "{name}");
        let late = Late { with_library: true, ..PLAIN };
        let with = hooked(&function(name, "\tret"), "", late).unwrap().text;
        assert!(String::from_utf8(with).unwrap().contains("teeperf_late_enter"), "{name}");
    }
}

#[test]
fn what_counts_itself_is_left() {
    let text = "\t.text\n\t.type\tf, @function\nf:\n\tendbr64\n\tpushq\t%rbp\n1:\tcall\tmcount\n\tpopq\t%rbp\n\tret\n\t.size\tf, .-f\n";
    let late = Late { counts_itself: true, ..PLAIN };
    let out = String::from_utf8(hooked(text, "", late).unwrap().text).unwrap();
    assert!(out.contains("\tendbr64\n\tcmpl\t$1, teeperf_gate+8(%rip)\n\tjne\t.Lteeperf_e0\n.Lteeperf_g0:\n\tpushq\t%rbp\n1:\tcall\tmcount\n"), "{out}");
}

#[test]
fn what_cannot_be_hooked_is_said() {
    let lto = "\t.section\t.gnu.lto_.opts,\"\",@progbits\n";
    assert_eq!(hooked(lto, "", PLAIN), Err(Error::NoCode));
}

proptest! {
    /// Lines of assembly in any order.
    #[test]
    fn anything_is_read(parts in prop::collection::vec(0..18_usize, 0..60)) {
        const LINES: [&str; 18] = [
            "f:", "g:", ".L1:", "\t.type\tf, @function", "\t.type\tg.cold, @function", "g.cold:", "\tcall\t__fentry__",
            "\tret", "\tjmp\t*%rax", "\tjmp\t.L1", "\tje\tg", "\t.cfi_startproc", "\t.cfi_endproc", "\t.size\tf, .-f",
            "\t.cfi_restore_state", "\t.section\t.rodata", "\t.long\t.L1-f", "#APP",
        ];
        let text: String = parts.iter().map(|&part| LINES[part].to_owned() + "\n").collect();
        let _ = hooked(&text, "", PLAIN);
        let _ = hooked(&text, "only g\nmin-size 1", Late { counts_itself: true, ..PLAIN });
    }

    #[test]
    fn no_bytes_are_too_strange(text: Vec<u8>) {
        let selection = Selection::default();
        let options = Options { selection: &selection, drop_line_info: true, paths: &|_| Vec::new() };
        let _ = insert(&text, &options, PLAIN);
    }
}
