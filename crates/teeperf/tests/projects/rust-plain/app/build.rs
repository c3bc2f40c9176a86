//! Runs where the program is built, and has no hooks.
fn main() {
    println!("cargo:rerun-if-changed=build.rs");
}
