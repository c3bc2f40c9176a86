//! CPU time, waiting and hooks of threads and call paths, as samples tell them.

use super::{Node, Thread, Tree};

/// Samples, waiting and hooks of a call path, or of a function, whose CPU time samples tell.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Spent {
    /// Samples in it.
    pub samples: u64,
    /// Variance of its self time, as a sum over these samples, ns^2.
    pub variance: f64,
    /// The same of its total.
    pub total_variance: f64,
    /// Deviation of its self time by what samples share, such as the time that a tick in the kernel
    /// stands for, nanoseconds. It adds up as time does.
    pub shared_ns: f64,
    /// The same of its total.
    pub total_shared_ns: f64,
    /// Nanoseconds for which threads waited in it, or in code without hooks that it called.
    pub waiting_ns: f64,
    /// The same, with all it called.
    pub total_waiting_ns: f64,
    /// CPU time of hooks in it, nanoseconds.
    pub hooks_ns: f64,
    /// The same, with all it called.
    pub total_hooks_ns: f64,
    /// CPU time of the kernel in it that samples tell, nanoseconds.
    pub kernel_ns: f64,
    /// The same, with all it called.
    pub total_kernel_ns: f64,
    /// CPU time in it of which no sample tells, nanoseconds: any function may have it.
    pub unsampled_ns: f64,
    /// CPU time of the kernel in it of which no sample tells the place, nanoseconds: any function
    /// with time of the kernel may have it.
    pub unplaced_ns: f64,
}

impl Spent {
    /// Its own part, without the totals.
    pub fn of_itself(self) -> Self {
        Self {
            total_waiting_ns: 0.0,
            total_variance: 0.0,
            total_shared_ns: 0.0,
            total_hooks_ns: 0.0,
            total_kernel_ns: 0.0,
            ..self
        }
    }

    /// The same without calls: its totals are its own part.
    pub fn of_leaf(self) -> Self {
        Self {
            total_waiting_ns: self.waiting_ns,
            total_variance: self.variance,
            total_shared_ns: self.shared_ns,
            total_hooks_ns: self.hooks_ns,
            total_kernel_ns: self.kernel_ns,
            ..self
        }
    }

    /// Adds what another has with all it called.
    pub(crate) fn add_totals(&mut self, other: &Self) {
        self.total_waiting_ns += other.total_waiting_ns;
        self.total_variance += other.total_variance;
        self.total_shared_ns += other.total_shared_ns;
        self.total_hooks_ns += other.total_hooks_ns;
        self.total_kernel_ns += other.total_kernel_ns;
    }
}

impl std::ops::AddAssign for Spent {
    fn add_assign(&mut self, other: Self) {
        let Self { samples, variance, shared_ns, waiting_ns, hooks_ns, .. } = other;
        let Self { kernel_ns, unsampled_ns, unplaced_ns, .. } = other;
        self.samples = self.samples.saturating_add(samples);
        self.variance += variance;
        self.shared_ns += shared_ns;
        self.waiting_ns += waiting_ns;
        self.hooks_ns += hooks_ns;
        self.kernel_ns += kernel_ns;
        self.unsampled_ns += unsampled_ns;
        self.unplaced_ns += unplaced_ns;
        self.add_totals(&other);
    }
}

/// CPU time as samples tell it, nanoseconds: of all of a tree, whatever part of it is shown.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Sampled {
    /// All of it, with that of hooks.
    pub whole_ns: f64,
    /// That of hooks.
    pub hooks_ns: f64,
    /// That of which no sample tells: any function may have it.
    pub unsampled_ns: f64,
    /// That of the kernel of which no sample tells the place.
    pub unplaced_ns: f64,
    /// That of the kernel which samples tell.
    pub kernel_ns: f64,
    /// Time that a sample in the kernel stands for.
    pub tick_ns: f64,
}

impl Sampled {
    /// Of a tree that nothing is left out of.
    pub fn of(tree: &Tree) -> Self {
        let mut sampled = Self { whole_ns: tree.total_ns(), ..Self::default() };
        let mut squares = 0.0;
        for Node { spent, .. } in &tree.nodes {
            sampled.whole_ns += spent.hooks_ns;
            sampled.hooks_ns += spent.hooks_ns;
            sampled.unsampled_ns += spent.unsampled_ns;
            sampled.unplaced_ns += spent.unplaced_ns;
            sampled.kernel_ns += spent.kernel_ns;
            squares += if spent.kernel_ns > 0.0 { spent.variance } else { 0.0 };
        }
        if sampled.kernel_ns > 0.0 {
            sampled.tick_ns = squares / sampled.kernel_ns;
        }
        sampled
    }
}

impl std::ops::AddAssign for Sampled {
    fn add_assign(&mut self, other: Self) {
        self.whole_ns += other.whole_ns;
        self.hooks_ns += other.hooks_ns;
        self.unsampled_ns += other.unsampled_ns;
        self.unplaced_ns += other.unplaced_ns;
        self.kernel_ns += other.kernel_ns;
        self.tick_ns = self.tick_ns.max(other.tick_ns);
    }
}

/// CPU time of threads and of others, as samples tell it. Where no sample fell into any thread, all
/// their CPU time may be any function's.
pub(crate) fn sampled<'a>(
    threads: impl IntoIterator<Item = &'a Thread>,
    others: Sampled,
) -> Sampled {
    let (mut all, mut cpu_ns) = (others, 0);
    for thread in threads {
        all += thread.sampled();
        cpu_ns = thread.cpu_ns.unwrap_or_default().saturating_add(cpu_ns);
    }
    if all.whole_ns == 0.0 {
        (all.whole_ns, all.unsampled_ns) = (cpu_ns as f64, cpu_ns as f64);
    }
    all
}
