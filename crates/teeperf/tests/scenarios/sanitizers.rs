//! Hooked programs under the compiler's sanitizers: what the runtime does to a program's memory
//! is seen by somebody who knows nothing of it.

use crate::support::*;

fn runs_clean(sanitizer: &str) {
    let shop = Workshop::new();
    for source in ["calls.c", "longjmps.c"] {
        let program = shop.build(source, Compiler::Gcc, &["-O1", "-g", sanitizer]);
        let recorded = shop.record(&[], &program, &[], 0);
        assert_calls(&recorded.outcome.told(), &recorded.report);
        assert_eq!(recorded.report.health("lost"), 0, "{source} {sanitizer}");
    }
}

/// Guards: a program that insists on being first in the order of libraries starts all the same,
/// and nothing of the runtime's memory is taken for a mistake.
#[test]
fn address_sanitizer() {
    runs_clean("-fsanitize=address");
}

#[test]
fn undefined_behaviour_sanitizer() {
    runs_clean("-fsanitize=undefined");
}
