//! What the attribute does not go with. Checked with the feature `errors`, for what the compiler says.

#![cfg_attr(not(feature = "errors"), allow(unused))]
#[cfg(feature = "errors")]
mod wrong {
    extern crate teeperf as teeperf_hooks;

    #[teeperf::profile]
    const fn constant() -> u32 {
        1
    }

    #[teeperf::profile]
    struct Structure;

    #[teeperf::profile(loudly)]
    fn misspelt() {}

    #[teeperf::profile(name = "one")]
    mod several {
        fn first() {}
    }

    trait Trait {
        #[teeperf::profile]
        fn required(&self);
    }

    #[teeperf::profile]
    fn fine() {}

    fn not_across_await() {
        fn is_send(_: impl Send) {}
        is_send(async {
            teeperf::scope!("held");
            std::future::ready(()).await;
        });
    }

    #[teeperf::profile(crate = nowhere)]
    fn elsewhere() {}
}

fn main() {}
