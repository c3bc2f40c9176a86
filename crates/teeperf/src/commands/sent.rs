//! What came of a recording that was sent.

use teeperf_edit::send::Sender;
use teeperf_record::Outcome;

/// Waits for the collector's word: where it keeps the recording, or why not all of it is there.
pub(crate) fn end(sender: Sender, outcome: &Outcome) -> Result<String, String> {
    let sent = outcome.recorded.bytes;
    match sender.end() {
        Err(error) => Err(format!(
            "the collector did not say what it kept ({error}): the recording may be missing there, or cut off"
        )),
        Ok(kept) => match kept.what {
            Ok(place) if kept.bytes == sent => Ok(place),
            Ok(place) => {
                Err(format!("the collector kept {} of {sent} bytes, in {place}", kept.bytes))
            }
            Err(why) => Err(format!(
                "the collector kept {} bytes, in {} packets, and not all of the recording: {why}",
                kept.bytes, kept.packets
            )),
        },
    }
}
