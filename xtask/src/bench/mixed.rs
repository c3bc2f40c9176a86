//! leveldb's db_bench with a benchmark that it lacks and RocksDB's has: four reads for each write, in turn and at random, each
//! operation timed for the histogram. And the same with a time stamp for every hundredth operation alone.

use std::fs;
use std::path::PathBuf;

use anyhow::{Context, Result};

use super::hooks::Hooks;
use super::lab::Lab;

/// How often it takes the time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stamps {
    /// After each operation, as db_bench does with `--histogram=1`.
    Each,
    /// After every hundredth; the histogram then has means of a hundred.
    Hundredth,
}

/// What changes in db_bench.cc: each text is there once.
const CHANGES: [(&str, &str); 5] = [
    (
        "      } else if (name == Slice(\"readrandom\")) {\n",
        "      } else if (name == Slice(\"mixed\")) {\n        method = &Benchmark::Mixed;\n      \
         } else if (name == Slice(\"readrandom\")) {\n",
    ),
    (
        "  void ReadRandom(ThreadState* thread) {\n",
        "  void Mixed(ThreadState* thread) {\n    ReadOptions options;\n    RandomGenerator gen;\n    \
         std::string value;\n    KeyBuffer key;\n    for (int i = 0; i < reads_; i++) {\n      \
         key.Set(thread->rand.Uniform(FLAGS_num));\n      if (thread->rand.Uniform(100) < 80) {\n        \
         db_->Get(options, key.slice(), &value);\n      } else {\n        \
         db_->Put(write_options_, key.slice(), gen.Generate(value_size_));\n      }\n      \
         thread->stats.FinishedSingleOp();\n    }\n  }\n\n  void ReadRandom(ThreadState* thread) {\n",
    ),
    (
        "    if (FLAGS_histogram) {\n      double now",
        "    if (FLAGS_histogram && done_ % STAMP_EVERY == 0) {\n      double now",
    ),
    (
        "      double micros = now - last_op_finish_;\n",
        "      double micros = (now - last_op_finish_) / STAMP_EVERY;\n",
    ),
    // What is told is then the time of the mixed run alone, with more digits.
    ("s : %11.3f micros/op;", "s : micros/op=%.5f "),
];

impl Lab {
    /// The program; `CLOCK_COST_NS` says how many nanoseconds a time stamp takes longer than it does.
    pub(crate) fn mixed_bench(&self, hooks: Hooks, stamps: Stamps) -> Result<PathBuf> {
        let source = self.debian("leveldb")?.join("benchmarks/db_bench.cc");
        let mut text = fs::read_to_string(&source).with_context(|| source.display().to_string())?;
        for (from, to) in CHANGES {
            let (before, after) =
                text.split_once(from).with_context(|| format!("no {from:?} in db_bench.cc"))?;
            text = [before, to, after].concat();
        }
        let (name, every) = match stamps {
            Stamps::Each => ("mixed_each.cc", 1),
            Stamps::Hundredth => ("mixed_hundredth.cc", 100),
        };
        let text = format!("#define STAMP_EVERY {every}\n{text}");
        let path = self.work.join("leveldb-mixed").join(name);
        fs::create_dir_all(self.work.join("leveldb-mixed"))?;
        if fs::read(&path).ok().as_deref() != Some(text.as_bytes()) {
            fs::write(&path, text)?;
        }
        let clock = self.bench_file("programs/slow_clock.cc").display().to_string();
        let main = path.to_str().context("the target folder's name is no UTF-8")?;
        self.leveldb_program(hooks, main, &["util/histogram.cc", &clock])
    }
}
