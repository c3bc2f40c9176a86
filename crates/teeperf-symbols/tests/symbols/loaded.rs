//! Code and variables, as `readelf` and `nm` know them.

use crate::toolchain::Workshop;
use teeperf_symbols::Loaded;

const SOURCE: &str = "long first = 3; static long *second __attribute__((used)) = &first;\n\
    extern long elsewhere; int main(void) { return first; }\n";

#[test]
fn variables_and_code_are_where_binutils_say() {
    let shop = Workshop::new();
    for flags in ["-O0 -g", "-O0 -no-pie -static", "-O0 -shared -fPIC"] {
        let file = shop.build(&format!("gcc {flags}"), "variables.c", SOURCE);
        let loaded = Loaded::open(&file).unwrap();
        let folder = file.parent().unwrap();
        for name in ["first", "second"] {
            let listed = shop.run("nm out", folder);
            let line = listed.lines().find(|line| line.ends_with(&format!(" {name}"))).unwrap();
            let address = u64::from_str_radix(&line[..16], 16).unwrap();
            assert_eq!(loaded.variable(name).unwrap(), Some(address), "{flags} {name}");
        }
        // A function is no variable, and neither is what is defined elsewhere.
        assert_eq!(loaded.variable("main").unwrap(), None);
        assert_eq!(loaded.variable("elsewhere").unwrap(), None);
        let segments = shop.run("readelf -lW out", folder);
        let number = |word: &str| u64::from_str_radix(&word[2..], 16).unwrap();
        let loads: Vec<Vec<&str>> = segments
            .lines()
            .map(|line| line.split_whitespace().collect::<Vec<_>>())
            .filter(|words| words.first() == Some(&"LOAD"))
            .collect();
        let expected: Vec<_> = loads
            .iter()
            .filter(|words| words[6..].contains(&"E") || words[6..].contains(&"RE"))
            .map(|words| (number(words[2]), number(words[5]), number(words[1])))
            .collect();
        let code: Vec<_> =
            loaded.code().map(|code| (code.address, code.length, code.offset)).collect();
        assert!(!code.is_empty());
        assert_eq!(code, expected, "{segments}");
        assert_eq!(loaded.first(), number(loads[0][2]) & !4095);
        assert_eq!(loaded.address_of(code[0].2), Some(code[0].0));
        assert_eq!(loaded.address_of(1 << 40), None);
    }
    // Stripped: what the dynamic linker sees is left.
    let file = shop.build("gcc -shared -fPIC", "library.c", SOURCE);
    let whole = Loaded::open(&file).unwrap();
    let stripped = Loaded::open(&shop.stripped(&file, "stripped")).unwrap();
    assert_eq!(stripped.variable("first").unwrap(), whole.variable("first").unwrap());
    assert_eq!(stripped.variable("second").unwrap(), None);
    assert_eq!(stripped.build_id(), whole.build_id());
}
