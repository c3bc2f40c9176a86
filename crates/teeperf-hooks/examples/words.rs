//! Counts words on several threads, and asks for some of them in async functions. To see it:
//!
//! ```text
//! cargo build --release -p teeperf-hooks --example words --features on
//! teeperf record -- target/release/examples/words
//! teeperf report
//! ```

use std::collections::HashMap;
use std::fmt::Write;
use std::thread;
use std::time::Duration;

#[teeperf_hooks::profile]
mod text {
    use std::collections::HashMap;
    use std::hash::Hash;

    /// How often each is there. `count::<&str>` and `count::<char>` are two functions in a report.
    pub(super) fn count<T: Eq + Hash>(things: impl Iterator<Item = T>) -> HashMap<T, u32> {
        let mut counts = HashMap::new();
        for thing in things {
            *counts.entry(thing).or_default() += 1;
        }
        counts
    }

    pub(super) fn made_up(seed: u32) -> String {
        let mut text = String::new();
        let mut number = seed;
        for _ in 0..20_000 {
            number = number.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            text.push_str(WORDS[number as usize % WORDS.len()]);
            text.push(' ');
        }
        text
    }

    const WORDS: [&str; 5] = ["call", "return", "stack", "clock", "word"];
}

/// Where the answer comes from takes its time: that is no time of a thread, and reported apart.
#[teeperf_hooks::profile]
async fn ask(counts: &HashMap<&str, u32>, word: &str) -> u32 {
    tokio::time::sleep(Duration::from_millis(3)).await;
    counts.get(word).copied().unwrap_or(0)
}

#[teeperf_hooks::profile]
async fn ask_all(counts: HashMap<&str, u32>) -> u32 {
    let mut sum = 0;
    for word in ["call", "word", "never"] {
        sum += ask(&counts, word).await;
    }
    sum
}

fn main() {
    let threads: Vec<_> = (0..4)
        .map(|seed| {
            thread::spawn(move || {
                let text = text::made_up(seed);
                let letters = text::count(text.chars());
                let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build();
                let counts = text::count(text.split_whitespace());
                let asked = runtime.expect("a runtime").block_on(ask_all(counts));
                teeperf_hooks::scope!("write");
                let mut line = String::new();
                write!(line, "{asked} words, {} letters", letters.len()).expect("a text");
                line
            })
        })
        .collect();
    for thread in threads {
        println!("{}", thread.join().expect("a thread that ends"));
    }
}
