//! What is sampled beside hooks, or alone, and who does it: the kernel, or a library within programs.

use crate::attached::{self, AttachError, Target, Tracer};
use crate::clock::ClockPage;
use crate::control::socket_name;
use crate::drain::Event;
use crate::options::Options;
use crate::packets::Level;
use crate::sample::{self, Chosen, Gate, Means as KernelMeans, Refused, Sampler, Sampling};
use crate::server::random;
use crate::sgx::{self, Desk, Front, Means, Sgx, Within};
use crate::stats::Stats;
use std::io;
use std::sync::Arc;
use std::sync::mpsc::Sender;

/// See the module.
#[derive(Debug)]
pub(crate) enum Sampled {
    Nothing,
    /// By the kernel's events.
    Kernel(Sampling, Chosen),
    /// By the library; because the kernel refuses, if it does.
    Within(Within, Option<Refused>),
    /// From another process.
    Outside(Sgx, Target),
}

/// Who takes the samples, and what the command gets for it.
#[derive(Debug, Default)]
pub(crate) struct Samplers {
    pub(crate) sampler: Option<Sampler>,
    pub(crate) gate: Option<Gate>,
    pub(crate) desk: Option<Desk>,
    pub(crate) tracer: Option<Tracer>,
    /// Name of the desk's socket.
    pub(crate) samples: Option<String>,
}

/// Why nobody takes them.
#[derive(Debug, thiserror::Error)]
pub(crate) enum StartError {
    #[error(transparent)]
    System(#[from] io::Error),
    #[error(transparent)]
    Attach(#[from] AttachError),
}

impl Sampled {
    /// Chooses who samples, and has the library preloaded if it does.
    pub(crate) fn choose(options: &mut Options) -> Result<Self, Refused> {
        let sampled = Self::choose_of(options)?;
        if let (Self::Within(..), Some(library)) = (&sampled, &options.inside) {
            // Before others: what these ask of the C library is to come by it.
            options.preload.insert(0, library.clone());
        }
        Ok(sampled)
    }

    fn choose_of(options: &Options) -> Result<Self, Refused> {
        if let Some(sgx) = &options.sgx {
            let target = options.attach.map(Target::Process);
            return match (sgx.front, target) {
                (Front::Inside, None) => {
                    let modules = sgx.modules.clone().into();
                    Ok(Self::Within(Within { how: sgx.how, has_enclaves: true, modules }, None))
                }
                (_, target) => Ok(Self::Outside(sgx.clone(), target.unwrap_or(Target::Command))),
            };
        }
        let Some(wish) = options.sample else { return Ok(Self::Nothing) };
        let within = Within { how: wish, has_enclaves: false, modules: [].into() };
        if options.is_sampled_within && options.inside.is_some() {
            return Ok(Self::Within(within, None));
        }
        match sample::choose(&wish) {
            Ok(chosen) => Ok(Self::Kernel(wish, chosen)),
            Err(refused) if options.inside.is_some() => Ok(Self::Within(within, Some(refused))),
            Err(refused) => Err(refused),
        }
    }

    /// Payloads of the packets that say so.
    pub(crate) fn payloads(&self, zero_ns: u64) -> Vec<Vec<u8>> {
        match self {
            Self::Nothing => Vec::new(),
            Self::Kernel(wish, chosen) => vec![sample::sampled(wish, chosen, zero_ns)],
            Self::Within(within, _) => sgx::sampled(within, zero_ns),
            Self::Outside(sgx, _) => attached::sampled(sgx, zero_ns),
        }
    }

    /// What the user is told.
    pub(crate) fn told(&self) -> Option<(Level, String)> {
        match self {
            Self::Nothing | Self::Outside(..) => None,
            Self::Kernel(_, chosen) => Some((Level::Information, chosen.told())),
            Self::Within(within, _) if within.has_enclaves => None,
            Self::Within(_, refused) => {
                let mut text = String::from(
                    "samples are of timers within the program, as often as the kernel ticks at most (CONFIG_HZ): time in the \
                     kernel is that of what called it, and programs that are linked statically have none",
                );
                if let Some(refused) = refused {
                    text = format!("{refused}, so {text}; next: {}", refused.advice());
                }
                Some((Level::Warning, text))
            }
        }
    }

    /// What samples are called.
    pub(crate) fn name(&self) -> Option<String> {
        match self {
            Self::Nothing => None,
            Self::Kernel(_, chosen) => Some(chosen.name()),
            Self::Within(within, _) => Some(within.name()),
            Self::Outside(..) => Some("enclaves and their hosts".into()),
        }
    }

    /// Starts who takes them.
    pub(crate) fn start(
        self,
        (page, stats, events): (Arc<ClockPage>, Arc<Stats>, Sender<Event>),
    ) -> Result<Samplers, StartError> {
        match self {
            Self::Nothing => Ok(Samplers::default()),
            Self::Kernel(wish, chosen) => {
                let means = KernelMeans { wish, chosen, page, stats, events };
                let (sampler, gate) = Sampler::start(means)?;
                let (sampler, gate) = (Some(sampler), Some(gate));
                Ok(Samplers { sampler, gate, ..Samplers::default() })
            }
            Self::Within(within, _) => {
                let name = socket_name(false, random()?);
                let desk = Some(Desk::start(&name, Means { within, page, stats, events })?);
                Ok(Samplers { desk, samples: Some(name), ..Samplers::default() })
            }
            Self::Outside(sgx, target) => {
                let means = attached::Means { sgx, target, page, stats, events };
                let (tracer, gate) = Tracer::start(means)?;
                Ok(Samplers { tracer: Some(tracer), gate, ..Samplers::default() })
            }
        }
    }
}
