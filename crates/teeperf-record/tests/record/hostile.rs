//! What a traced process may do to the recorder: nothing.

use crate::harness::record;
use crate::roles::words_of;

#[test]
fn random_words_over_the_shared_memory() {
    for _ in 0..2 {
        let (outcome, recording) = record("jumble 1000000", |_| {});
        assert_eq!(outcome.exit_code(), 0);
        assert!(outcome.error.is_none());
        assert!(recording.is_closed());
        // Whatever it is, each chunk can be taken apart.
        recording.chunks();
    }
}

#[test]
fn memory_cannot_be_cut_off() {
    let (outcome, recording) = record("cut", |_| {});
    assert_eq!(outcome.exit_code(), 0);
    assert_eq!(crate::reading::events(&recording.threads()[&(1, 1)]), words_of(1, 10));
}

#[test]
fn strange_messages_and_silence_keep_nobody_out() {
    let (outcome, recording) = record("knocks", |_| {});
    assert_eq!(outcome.exit_code(), 0);
    assert_eq!(recording.threads().len(), 1);
    let is_told =
        |notice: &String| notice.contains("sent a request that the recorder does not know");
    assert_eq!(recording.notices().into_iter().filter(is_told).count(), 1);
}

#[test]
fn windows_and_modules_without_end() {
    let (outcome, recording) = record("lists", |_| {});
    assert_eq!(outcome.exit_code(), 0);
    assert!(recording.is_closed());
    assert!(outcome.notices.iter().any(|notice| notice.contains("modules")), "{outcome:?}");
}
