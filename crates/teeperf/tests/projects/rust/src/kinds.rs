//! Functions, methods, traits and modules. [`run`] is called by three threads, [`run_once`] by one.

use std::fmt::Debug;
use std::hint::black_box;
use std::panic::catch_unwind;
use std::str::FromStr;

#[teeperf::profile]
pub fn run() {
    for round in 0..10 {
        assert_eq!(fibonacci(black_box(5)), 5);
        assert_eq!(parse::<u32>("7").ok(), Some(7));
        assert!(parse::<i32>("x").is_err());
        assert_eq!(parse::<String>("y").unwrap(), "y");
        let shape = Square { side: round };
        assert_eq!(shape.area(), round * round);
        assert_eq!(shape.doubled(), 2 * round * round);
        assert_eq!(Holder("a").get(), &"a");
        assert_eq!(Holder(round).get(), &round);
        inner::deeper::leaf();
    }
}

/// Fifteen calls for 5.
#[teeperf::profile]
fn fibonacci(n: u32) -> u32 {
    if n < 2 { n } else { fibonacci(n - 1) + fibonacci(n - 2) }
}

#[teeperf::profile]
fn parse<T: FromStr>(text: &str) -> Result<T, T::Err> {
    let value = text.parse::<T>()?;
    Ok(value)
}

trait Shape {
    fn area(&self) -> u32;
    fn doubled(&self) -> u32;
}

#[teeperf::profile]
trait Doubling {
    fn size(&self) -> u32;
    fn twice(&self) -> u32 {
        2 * self.size()
    }
}

struct Square {
    side: u32,
}

#[teeperf::profile]
impl Shape for Square {
    fn area(&self) -> u32 {
        self.side * self.side
    }
    fn doubled(&self) -> u32 {
        self.twice()
    }
}

impl Doubling for Square {
    #[teeperf::profile(skip)]
    fn size(&self) -> u32 {
        self.area()
    }
}

struct Holder<T>(T);

#[teeperf::profile]
impl<T: Debug> Holder<T> {
    fn get(&self) -> &T {
        self.check();
        &self.0
    }

    #[teeperf::profile(skip)]
    fn check(&self) {
        assert!(!format!("{:?}", self.0).is_empty());
    }

    const fn constant() -> u32 {
        3
    }
}

#[teeperf::profile(crate = teeperf)]
mod inner {
    pub mod deeper {
        pub fn leaf() {
            std::hint::black_box(());
        }
    }
    pub fn never() {}
}

teeperf::profile_all! {
    fn first<'a>(words: &'a [&'a str]) -> impl Iterator<Item = &'a str> + use<'a> {
        words.iter().map(|word| &word[..1])
    }

    extern "C" fn for_c(n: i32) -> i32 {
        n + 1
    }

    #[profile(name = "a \"name\" {of} its \\ own")]
    fn named() {}

    fn panics(depth: u32) {
        if depth == 0 {
            panic!("as it should");
        }
        panics(depth - 1);
    }
}

/// Says where it is called.
#[teeperf::profile]
#[track_caller]
fn caller() -> u32 {
    std::panic::Location::caller().line()
}

/// Calls itself for another type.
#[teeperf::profile]
#[inline(always)]
fn closed<T: Into<u64> + Copy>(value: T, again: bool) -> impl Fn(u64) -> u64 + use<T> {
    let inner = again.then(|| closed(1u8, false)(1)).unwrap_or(0);
    move |more| value.into() + more + inner
}

mod both {
    macro_rules! made {
        ($name:ident, $body:block) => {
            /// What it is stays said.
            #[teeperf::profile]
            pub fn $name() -> u32 $body
        };
    }
    made!(of_macro, { 4 });
}

/// Panics end without a word on standard error.
#[teeperf::profile]
fn stop() -> ! {
    std::panic::resume_unwind(Box::new(()))
}

pub fn run_once() {
    inner::never();
    assert_eq!(Holder::<u8>::constant(), 3);
    assert_eq!(first(&["ab", "cd"]).collect::<String>(), "ac");
    assert_eq!(for_c(2), 3);
    named();
    std::panic::set_hook(Box::new(|_| {}));
    for _ in 0..4 {
        assert!(catch_unwind(|| panics(2)).is_err());
        assert!(catch_unwind(|| stop()).is_err());
    }
    let (here, there) = (line!(), [caller(), caller()]);
    assert_eq!(there, [here; 2]);
    assert_eq!(closed(2u16, true)(3), 2 + 3 + 2);
    assert_eq!(closed(2u8, false)(3), 5);
    assert_eq!(both::of_macro(), 4);
    for n in 0..6 {
        teeperf::scope!("a round");
        let closure = || {
            teeperf::scope!("in a closure");
            n
        };
        assert_eq!(closure(), n);
    }
}
