fn main() {
    println!("cargo:rerun-if-changed=collatz.c");
    cc::Build::new().file("collatz.c").warnings_into_errors(true).compile("collatz");
}
