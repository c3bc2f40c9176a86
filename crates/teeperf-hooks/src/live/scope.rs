//! The calls that C compilers write by themselves (`-finstrument-functions`), where Rust code asks for them.

use crate::Site;
use core::arch::asm;
use core::marker::PhantomData;

// SAFETY: so GCC's manual has both (-finstrument-functions), and whoever brings them. They follow no address.
unsafe extern "C" {
    /// A function was entered. Both addresses are only compared and written down.
    safe fn __cyg_profile_func_enter(function: usize, call_site: usize);
    /// A function is about to be left.
    safe fn __cyg_profile_func_exit(function: usize, call_site: usize);
}

/// Calls a hook, which is the module's own: directly. What Rust declares may be another module's, and the compiler has
/// such calls read where they lead.
#[cfg(all(not(test), feature = "on", target_os = "linux", target_arch = "x86_64"))]
macro_rules! call {
    ($hook:ident, $function:expr) => {
        // SAFETY: a call as C makes it, with these arguments; it does not unwind.
        unsafe {
            asm!("call {hook}", hook = sym $hook, in("rdi") $function, in("rsi") 0usize, clobber_abi("C"));
        }
    };
}
#[cfg(not(all(not(test), feature = "on", target_os = "linux", target_arch = "x86_64")))]
macro_rules! call {
    ($hook:ident, $function:expr) => {
        $hook($function, 0)
    };
}

/// A call that is recorded: its return when this is dropped. [`scope!`](crate::scope) makes one that
/// lives as long as it should; of several the last made has to be dropped first.
#[must_use = "the call would return at once"]
#[derive(Debug)]
pub struct Scope {
    function: usize,
    /// Calls and returns are one thread's.
    here: PhantomData<*const ()>,
}

impl Scope {
    /// A call of what is at this site.
    #[inline(always)]
    pub fn at(site: Site) -> Self {
        Self::enter(site.address())
    }

    /// A call of this function.
    #[inline(always)]
    pub fn of(function: *const ()) -> Self {
        Self::enter(function as usize)
    }

    /// A call of the function that this is in, once all is inlined: readers look for the symbol around an address.
    #[inline(always)]
    pub fn here() -> Self {
        let place: usize;
        // SAFETY: each writes an address of code next to it into a register, and does nothing else.
        unsafe {
            #[cfg(target_arch = "aarch64")]
            asm!("adr {}, .", out(reg) place, options(nomem, nostack, preserves_flags));
            #[cfg(target_arch = "arm")]
            asm!("mov {}, pc", out(reg) place, options(nomem, nostack, preserves_flags));
            #[cfg(target_arch = "riscv64")]
            asm!("auipc {}, 0", out(reg) place, options(nomem, nostack, preserves_flags));
            #[cfg(target_arch = "x86_64")]
            asm!("lea {}, [rip]", out(reg) place, options(nomem, nostack, preserves_flags));
        }
        Self::enter(place)
    }

    #[inline(always)]
    fn enter(function: usize) -> Self {
        call!(__cyg_profile_func_enter, function);
        Self { function, here: PhantomData }
    }
}

impl Drop for Scope {
    #[inline(always)]
    fn drop(&mut self) {
        call!(__cyg_profile_func_exit, self.function);
    }
}

#[cfg(test)]
pub(super) mod tests {
    use crate::scope;
    use std::cell::RefCell;
    use std::panic::catch_unwind;

    thread_local! {
        static CALLS: RefCell<Vec<(usize, bool)>> = const { RefCell::new(Vec::new()) };
    }

    #[unsafe(no_mangle)]
    extern "C" fn __cyg_profile_func_enter(function: usize, _: usize) {
        CALLS.with_borrow_mut(|calls| calls.push((function, true)));
    }

    #[unsafe(no_mangle)]
    extern "C" fn __cyg_profile_func_exit(function: usize, _: usize) {
        CALLS.with_borrow_mut(|calls| calls.push((function, false)));
    }

    /// What is recorded of it.
    pub(crate) fn of(run: impl FnOnce()) -> Vec<(usize, bool)> {
        CALLS.take();
        run();
        CALLS.take()
    }

    fn twice<T: Default>() -> T {
        scope!(twice::<T>);
        inner(false);
        T::default()
    }

    #[inline(always)]
    fn inner(panics: bool) {
        scope!(inner);
        assert!(!panics, "as was asked for");
    }

    #[inline(never)]
    fn nameless(depth: u32) {
        scope!();
        if depth > 0 {
            nameless(depth - 1);
        }
    }

    #[test]
    fn named_functions_stand_in_each_other_though_they_are_inlined() {
        let recorded = of(|| assert_eq!(twice::<u8>(), 0));
        let (outer, inner) = (recorded[0].0, recorded[1].0);
        assert_eq!(recorded, [(outer, true), (inner, true), (inner, false), (outer, false)]);
        assert_ne!(outer, inner);
    }

    #[test]
    fn what_panics_returns() {
        let recorded = of(|| assert!(catch_unwind(|| inner(true)).is_err()));
        let function = recorded[0].0;
        assert_eq!(recorded, [(function, true), (function, false)]);
    }

    #[test]
    #[cfg_attr(miri, ignore = "reads where it is, by assembly")]
    fn a_nameless_one_is_a_place_in_its_function() {
        let recorded = of(|| nameless(1));
        let place = recorded[0].0;
        assert_eq!(recorded, [(place, true), (place, true), (place, false), (place, false)]);
        let offset = place.wrapping_sub(nameless as *const () as usize);
        assert!((1..4096).contains(&offset), "{offset}");
    }
}
