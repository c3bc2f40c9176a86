//! Symbols of real programs, built by the tests with the compilers of the machine.

mod calls;
mod companions;
mod debug_files;
mod forms;
mod functions;
mod hostile;
mod inlined;
mod lines;
mod loaded;
mod servers;
mod toolchain;
