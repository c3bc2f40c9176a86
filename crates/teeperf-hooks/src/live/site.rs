//! Sites: addresses that stand for functions, whether these have code of their own or are inlined everywhere.

/// What a call is recorded as: an address that a reader finds name, file and line for. Made by macros.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Site(*const ());

// SAFETY: the address is compared and written down, and never followed.
unsafe impl Send for Site {}
// SAFETY: likewise.
unsafe impl Sync for Site {}

impl Site {
    /// The site that is known by the address of this function.
    #[doc(hidden)]
    #[inline(always)]
    pub const fn new(function: *const ()) -> Self {
        Self(function)
    }

    #[inline(always)]
    pub(crate) fn address(self) -> usize {
        self.0 as usize
    }
}

/// A site of its own for each instantiation of the function that it stands in.
///
/// It is a function that nobody calls. A nested item cannot name the generic parameters around it, but a closure there
/// has them in its type: so the function is one that is generic over that, and of those there are, it is the code that
/// drops a value, as the compiler puts the whole type into that symbol, with either mangling. Name, file and line stand
/// in a note that is not loaded (docs/format.md, section 8), since linkers keep notes, whatever else they
/// leave out, and `strip` does. `depth` says how many closures the type has around the name, 0 that the name there counts
/// as it is.
///
/// Of functions with the same code the compiler and linkers keep one. These have in their code where the name of their
/// type is, and where it is written what they stand for, so those alone become one of which that is the same.
#[doc(hidden)]
#[macro_export]
macro_rules! __site {
    ($depth:literal, [$($name:tt)*], $suffix:literal, [$($file:tt)*], $line:expr) => {{
        #[allow(non_camel_case_types)]
        struct teeperf_site<C>(#[allow(dead_code)] $crate::__private::core::marker::PhantomData<C>);
        impl<C> Drop for teeperf_site<C> {
            #[inline(always)]
            fn drop(&mut self) {
                // SAFETY: writes into another section, and a register.
                #[cfg(not(miri))]
                unsafe {
                    $crate::__private::core::arch::asm!(
                        ".pushsection .note.teeperf,\"\",%note",
                        ".balign 4",
                        ".long 3f - 2f, 5f - 4f, 1",
                        "2: .asciz \"TeePerf\"",
                        "3: .balign 4",
                        "4:",
                        $crate::__address!(),
                        ".long {line}",
                        concat!(".byte ", $depth),
                        concat!(".asciz \"", $($name)*, "\""),
                        concat!(".asciz \"", $suffix, "\""),
                        concat!(".asciz \"", $($file)*, "\""),
                        "5: .balign 4",
                        ".popsection",
                        "/* {type_name} {what} */",
                        line = const $line,
                        site = sym $crate::__private::core::ptr::drop_in_place::<teeperf_site<C>>,
                        type_name = in(reg) $crate::__private::core::any::type_name::<C>().as_ptr(),
                        what = in(reg) concat!($($name)*, $suffix, $($file)*, $line).as_ptr(),
                        options(nostack, preserves_flags),
                    );
                }
            }
        }
        #[inline(always)]
        fn site<C>(_: &C) -> $crate::Site {
            $crate::Site::new($crate::__private::core::ptr::drop_in_place::<teeperf_site<C>> as *const ())
        }
        site(&|| ())
    }};
}

/// How an address is written.
#[doc(hidden)]
#[macro_export]
#[cfg(target_pointer_width = "64")]
macro_rules! __address {
    () => {
        ".quad {site}"
    };
}

/// How an address is written.
#[doc(hidden)]
#[macro_export]
#[cfg(not(target_pointer_width = "64"))]
macro_rules! __address {
    () => {
        ".long {site}"
    };
}

#[cfg(test)]
mod tests {
    use super::Site;

    fn of<T: Default>() -> [Site; 2] {
        let _ = T::default();
        [
            crate::__site!(1, [module_path!()], "", [file!()], line!()),
            crate::__site!(1, [module_path!()], " [again]", [file!()], line!()),
        ]
    }

    #[test]
    #[cfg_attr(miri, ignore = "gives a function another address each time")]
    fn each_instantiation_has_one_and_each_time_the_same() {
        let [a, b] = [of::<u8>(), of::<i8>()];
        assert_eq!(a, of::<u8>());
        let all = [a[0], a[1], b[0], b[1]];
        for (at, site) in all.iter().enumerate() {
            assert!(!all[..at].contains(site));
        }
    }
}
