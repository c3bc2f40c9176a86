extern "C" {
    fn collatz_length(number: std::ffi::c_long) -> std::ffi::c_int;
}

fn main() {
    // SAFETY: takes a number and looks at nothing else.
    println!("{}", unsafe { collatz_length(27) });
}
