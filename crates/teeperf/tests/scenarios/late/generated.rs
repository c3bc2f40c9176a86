//! Programs whose functions take and return values of many types, made from a seed. Each mixes its
//! arguments into a sum, which the program prints.

use std::fmt::Write;

/// Types, how their values are written, and how one is mixed in.
const TYPES: [(&str, &str, &str); 15] = [
    ("int", "#", "M(@)"),
    ("long", "#L", "M(@)"),
    ("char", "#", "M(@)"),
    ("unsigned short", "#", "M(@)"),
    ("float", "#.5f", "M(@)"),
    ("double", "#.25", "M(@)"),
    ("long double", "#.125L", "{ double d = @; M(d) }"),
    ("__int128", "(__int128)# << 64", "M(@)"),
    ("struct two", "(struct two){#, 1}", "M(@.a) M(@.b)"),
    ("struct mixed", "(struct mixed){#, 2.5}", "M(@.a) M(@.b)"),
    ("struct large", "(struct large){{#, 2, 3, 4}}", "M(@.a[0])"),
    ("struct reals", "(struct reals){#, 1.5f, 2}", "M(@.a) M(@.b) M(@.c)"),
    ("_Complex double", "# + 2.0i", "M(@)"),
    ("void *", "(void *)#L", "M(@)"),
    ("vector", "(vector){#, 1, 2, 3}", "M(@)"),
];

const HEAD: &str = "#include <stdarg.h>\n#include <stdio.h>\n\
    struct two { int a, b; }; struct mixed { long a; double b; }; struct large { long a[4]; };\n\
    struct reals { float a, b, c; }; typedef float vector __attribute__((vector_size(16)));\n\
    static unsigned long sum = 7; static int depth;\n\
    __attribute__((no_instrument_function, noinline)) static void mix(const void *p, unsigned long size) {\n\
    for (const unsigned char *c = p; size--; c++) sum = (sum ^ *c) * 0x100000001b3; }\n\
    #define M(x) { __typeof__(x) v = x; mix(&v, sizeof v); }\n";

/// Functions of a program.
const FUNCTIONS: usize = 24;

struct Function {
    /// Index into [`TYPES`]; nothing returned where there is none.
    result: Option<usize>,
    arguments: Vec<usize>,
    convention: &'static str,
    is_variadic: bool,
}

/// Numbers from a seed: the generator of PCG's first paper, without its output function.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, limit: usize) -> usize {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % limit
    }
}

/// A program in C; with clang's conventions, or without.
pub(crate) fn program(seed: u64, is_clang: bool) -> String {
    let mut numbers = Numbers(seed);
    let functions: Vec<Function> =
        (0..FUNCTIONS).map(|_| Function::made(&mut numbers, is_clang)).collect();
    let mut text = HEAD.to_owned();
    for (at, function) in functions.iter().enumerate() {
        text += &function.head(at);
        text += ";\n";
    }
    for (at, function) in functions.iter().enumerate() {
        text += &function.head(at);
        text += &function.body(at, &functions, &mut numbers);
    }
    text += "int main(void) { for (int n = 0; n < 20; n++) { depth = 0; sum += n;\n";
    for (at, function) in functions.iter().enumerate() {
        let _ = writeln!(text, "{};", function.call(at, &mut numbers));
    }
    text + "} printf(\"%lx\\n\", sum); return 0; }\n"
}

impl Function {
    fn made(numbers: &mut Numbers, is_clang: bool) -> Self {
        const CLANGS: [&str; 4] = ["preserve_most", "preserve_all", "regcall", "ms_abi"];
        let convention = match numbers.below(8) {
            0 => "ms_abi",
            kind @ 1..4 if is_clang => CLANGS[kind - 1],
            _ => "",
        };
        let count = numbers.below(10);
        let simple = matches!(convention, "preserve_most" | "preserve_all" | "ms_abi");
        let kinds = if simple { 3 } else { TYPES.len() };
        let arguments: Vec<usize> = (0..count).map(|_| numbers.below(kinds)).collect();
        let is_void = convention.starts_with("preserve") || numbers.below(6) == 0;
        let result = if is_void { None } else { Some(numbers.below(kinds)) };
        let is_variadic = convention.is_empty() && count > 0 && numbers.below(4) == 0;
        Self { result, arguments, convention, is_variadic }
    }

    fn result(&self) -> &'static str {
        self.result.map_or("void", |kind| TYPES[kind].0)
    }

    fn head(&self, at: usize) -> String {
        let named = |(number, kind): (usize, &usize)| format!("{} p{number}", TYPES[*kind].0);
        let mut arguments: Vec<String> = self.arguments.iter().enumerate().map(named).collect();
        if self.is_variadic {
            arguments.push("...".into());
        }
        if arguments.is_empty() {
            arguments.push("void".into());
        }
        let convention = match self.convention {
            "" => String::new(),
            name => format!("__attribute__(({name})) "),
        };
        format!(
            "{convention}__attribute__((noinline)) {} f{at}({})",
            self.result(),
            arguments.join(", ")
        )
    }

    fn call(&self, at: usize, numbers: &mut Numbers) -> String {
        let mut values: Vec<String> =
            self.arguments.iter().map(|&kind| value(kind, numbers)).collect();
        if self.is_variadic {
            values.extend(["7", "2.5", "9L"].map(String::from));
        }
        format!("f{at}({})", values.join(", "))
    }

    fn body(&self, at: usize, functions: &[Self], numbers: &mut Numbers) -> String {
        let mut text = format!("{{ M((int){at})\n");
        for (number, &kind) in self.arguments.iter().enumerate() {
            text += &mixed(kind, &format!("p{number}"));
        }
        if self.is_variadic {
            let last = self.arguments.len() - 1;
            let _ = write!(
                text,
                "va_list l; va_start(l, p{last}); M(va_arg(l, int)) M(va_arg(l, double)) M(va_arg(l, long)) va_end(l);"
            );
        }
        let leave = |numbers: &mut Numbers| match self.result {
            Some(kind) => format!("return {};", value(kind, numbers)),
            None => "return;".into(),
        };
        let _ =
            writeln!(text, "if (++depth > 5 || sum % 5 == 0) {{ depth--; {} }}", leave(numbers));
        for _ in 0..=numbers.below(2) {
            let other = numbers.below(FUNCTIONS);
            let call = functions[other].call(other, numbers);
            let bit = 1 << numbers.below(4);
            let _ = match functions[other].result {
                Some(kind) => writeln!(
                    text,
                    "if (sum & {bit}) {{ {} x = {call}; {} }}",
                    TYPES[kind].0,
                    mixed(kind, "x")
                ),
                None => writeln!(text, "if (sum & {bit}) {call};"),
            };
        }
        text += "switch (sum % 7) { case 0: sum += 3; break; case 1: M('b') break; case 2: sum ^= 5; case 3: M('d') break;\n\
                 case 4: M(4.5) break; case 5: sum += 11; break; default:; }\ndepth--;\n";
        // The last call may become a jump.
        let alike = |other: &usize| functions[*other].result == self.result && *other != at;
        let last: Vec<usize> = (0..FUNCTIONS).filter(alike).collect();
        text += &match last.is_empty() {
            true => leave(numbers),
            false => {
                let other = last[numbers.below(last.len())];
                let call = functions[other].call(other, numbers);
                format!("{}{call};", if self.result.is_some() { "return " } else { "" })
            }
        };
        text + " }\n"
    }
}

fn value(kind: usize, numbers: &mut Numbers) -> String {
    TYPES[kind].1.replace('#', &numbers.below(100).to_string())
}

fn mixed(kind: usize, name: &str) -> String {
    TYPES[kind].2.replace('@', name) + "\n"
}
