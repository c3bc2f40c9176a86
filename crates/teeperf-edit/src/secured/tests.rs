use super::*;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;

const SOON: Duration = Duration::from_secs(20);

fn secret(digit: &str) -> Secret {
    Secret::parse(&digit.repeat(DIGITS)).unwrap()
}

/// A collector's side of a connection that begins right.
fn accept(mut stream: UnixStream, secret: &Secret) -> io::Result<Secured> {
    let mut opens = [0; OPENS.len()];
    stream.read_exact(&mut opens)?;
    assert_eq!(opens, OPENS);
    Secured::accept(Box::new(stream), secret, Instant::now() + SOON)
}

/// Both sides, and all that the sender's side wrote.
fn opened(theirs: &str, ours: &str) -> (io::Result<Secured>, io::Result<Secured>) {
    let (own, other) = UnixStream::pair().unwrap();
    let (theirs, ours) = (secret(theirs), secret(ours));
    std::thread::scope(|scope| {
        let accepts = scope.spawn(move || accept(other, &ours));
        let offers = Secured::offer(Box::new(own), &theirs, SOON);
        (offers, accepts.join().unwrap())
    })
}

#[test]
fn what_is_said_arrives_on_both_sides() {
    let (sender, collector) = opened("a", "a");
    let (mut sender, mut collector) = (sender.unwrap(), collector.unwrap());
    let text: Vec<u8> = (0..200_000u32).map(|at| at as u8).collect();
    let mut again = sender.again().unwrap();
    let sent = text.clone();
    let thread = std::thread::spawn(move || {
        again.write_all(b"first").unwrap();
        again.write_all(&sent).unwrap();
        again.end().unwrap();
    });
    let mut heard = Vec::new();
    collector.read_to_end(&mut heard).unwrap();
    thread.join().unwrap();
    assert_eq!(heard, [b"first", &text[..]].concat());
    collector.write_all(b"kept\n").unwrap();
    let mut word = [0; 5];
    sender.read_exact(&mut word).unwrap();
    assert_eq!(&word, b"kept\n");
}

#[test]
fn another_secret_is_told_on_both_sides() {
    let (sender, collector) = opened("a", "b");
    assert!(sender.err().unwrap().to_string().contains("another one"));
    assert!(collector.err().unwrap().to_string().contains("does not know the secret"));
}

/// Guards: what somebody on the way wrote down, and sends once more.
#[test]
fn what_was_said_before_opens_nothing() {
    let (mut own, other) = UnixStream::pair().unwrap();
    let (there, mut tap) = UnixStream::pair().unwrap();
    let one = secret("a");
    let mut noise = builder(&one).unwrap().build_initiator().unwrap();
    let mut before: Box<dyn Stream> = Box::new(there);
    before.write_all(&OPENS).unwrap();
    say(&mut *before, &mut noise).unwrap();
    drop(before);
    let mut written = Vec::new();
    tap.read_to_end(&mut written).unwrap();
    own.write_all(&written).unwrap();
    // Whoever has no key of that connection cannot go on in it.
    own.write_all(&[0, 20]).unwrap();
    own.write_all(&[7; 20]).unwrap();
    own.end().unwrap();
    let mut collector = accept(other, &one).unwrap();
    assert!(collector.read(&mut [0; 8]).is_err());
}

#[test]
fn a_changed_bit_and_a_message_twice_are_errors() {
    for twice in [false, true] {
        let (mut own, other) = UnixStream::pair().unwrap();
        let one = secret("a");
        let for_thread = one.clone();
        let thread = std::thread::spawn(move || accept(other, &for_thread).unwrap());
        let mut sender = Secured::offer(Box::new(own.try_clone().unwrap()), &one, SOON).unwrap();
        let mut collector = thread.join().unwrap();
        let (tap, mut tapped) = UnixStream::pair().unwrap();
        sender.stream = Box::new(tap);
        sender.write_all(b"packet").unwrap();
        drop(sender);
        let mut message = Vec::new();
        tapped.read_to_end(&mut message).unwrap();
        if twice {
            own.write_all(&message).unwrap();
            collector.read_exact(&mut [0; 6]).unwrap();
        } else {
            message[5] ^= 1;
        }
        own.write_all(&message).unwrap();
        assert!(collector.read(&mut [0; 8]).is_err(), "{twice}");
    }
}

/// Guards: who sends a byte now and then.
#[test]
fn a_message_is_not_waited_for_longer_than_is_said() {
    let (sender, collector) = opened("a", "a");
    let (sender, mut collector) = (sender.unwrap(), collector.unwrap());
    collector.patience(Some(Duration::from_millis(300))).unwrap();
    let mut raw = sender.stream.again().unwrap();
    let drips = std::thread::spawn(move || {
        for _ in 0..40 {
            std::thread::sleep(Duration::from_millis(50));
            let _ = raw.write_all(&[9]);
        }
    });
    let begun = Instant::now();
    assert!(collector.read(&mut [0; 8]).is_err());
    assert!(begun.elapsed() < Duration::from_millis(1500));
    drips.join().unwrap();
}

#[test]
fn a_secret_is_of_a_file_that_nobody_else_reads() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("secret");
    let made = Secret::make(&path).unwrap();
    assert_eq!(Secret::read(&path).unwrap().0, made.0);
    assert_ne!(made.0, [0; 32]);
    assert!(Secret::make(&path).is_err(), "it stays");
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o640)).unwrap();
    assert!(Secret::read(&path).unwrap_err().to_string().contains("chmod 600"));
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
    for text in ["", "abc", &"g".repeat(64), &"a".repeat(65), &"é".repeat(32)] {
        std::fs::write(&path, text).unwrap();
        assert!(Secret::read(&path).is_err(), "{text}");
    }
    assert_eq!(format!("{made:?}"), "Secret");
}
