//! `perf.data`: what perf records, and what others write for it, such as Gramine. `docs/perf-data.md` says what is
//! read and what is left out.
//!
//! * [`is_perf_data`]: whether bytes are the beginning of such a file.
//! * [`write()`]: packets of samples, whoever gives them, as such a file.
//! * [`Paths`]: call paths of a profile as packets of samples, for [`write()`].
//! * [`Reader`]: its samples, maps and tasks as [packets](teeperf_profile::Packets), in the order of time.
//!
//! The format is that of Linux's `tools/perf/Documentation/perf.data-file-format.txt` and
//! `include/uapi/linux/perf_event.h`. A file has a head, attributes of events, records, and behind these features: what is
//! known of the machine and the run. What comes out of a pipe has records alone.

mod ahead;
mod attr;
mod batch;
mod block;
mod bytes;
mod error;
mod event_name;
mod features;
mod fetch;
mod file;
mod known;
mod mapped;
mod namespaces;
mod packets;
mod paths;
mod reader;
mod record;
mod records;
mod rounds;
mod sample;
mod streams;
mod unpack;
mod write;

pub use error::Error;
pub use file::{MAGIC, is_perf_data};
pub use paths::{LeftOut, Paths};
pub use reader::{HEAD_FILE, Reader};
pub use write::{WriteError, Written, write};
