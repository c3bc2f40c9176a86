//! Where recordings are sent and come from: `tcp:HOST:PORT` or `unix:PATH`.

use anyhow::{Context, Result, ensure};
use clap::Args;
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream, ToSocketAddrs};
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileTypeExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::time::Duration;
use teeperf_edit::greeting::Stream;
use teeperf_edit::secured::Secret;
use teeperf_edit::send::Sender;

/// A place to connect to, or to listen at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// Host and port.
    Tcp(String),
    /// A socket's path.
    Unix(PathBuf),
}

/// Who may read and write what is sent.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct Access {
    /// File with the secret that encrypts what is sent: 64 hexadecimal digits that nobody else may read
    #[arg(long, value_name = "FILE")]
    pub(crate) secret: Option<PathBuf>,
    /// Send, or listen, beyond this machine without a secret: whoever is on the way reads and changes what is sent
    #[arg(long, conflicts_with = "secret")]
    pub(crate) insecure: bool,
}

impl Access {
    /// An error where the place is beyond this machine, and there is no secret.
    pub(crate) fn check(&self, place: &Place) -> Result<()> {
        self.check_here(place, place.is_here())
    }

    fn check_here(&self, place: &Place, is_here: bool) -> Result<()> {
        ensure!(
            self.secret.is_some() || self.insecure || is_here,
            "{place} is beyond this machine: whoever is on the way could read and change what is sent; next: --secret FILE \
             on both sides (`teeperf collect` makes the file), or --insecure"
        );
        Ok(())
    }

    /// The secret.
    pub(crate) fn read(&self) -> Result<Option<Secret>> {
        let read = |path: &PathBuf| Secret::read(path).with_context(|| path.display().to_string());
        self.secret.as_ref().map(read).transpose()
    }

    /// As the other side is to type it.
    pub(crate) fn shown(&self) -> String {
        match &self.secret {
            Some(path) => format!(" --secret {}", crate::shell::typed(path)),
            None if self.insecure => " --insecure".into(),
            None => String::new(),
        }
    }
}

/// Who takes nothing for so long is gone.
const PATIENCE: Duration = Duration::from_secs(10);

impl Place {
    /// As it is typed.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        match text.split_once(':') {
            Some(("tcp", place))
                if place.rsplit_once(':').is_some_and(|(host, port)| {
                    !host.is_empty() && port.parse::<u16>().is_ok()
                }) =>
            {
                Ok(Self::Tcp(place.into()))
            }
            Some(("unix", path)) if !path.is_empty() => Ok(Self::Unix(path.into())),
            _ => Err("such as tcp:HOST:PORT or unix:PATH".into()),
        }
    }

    /// Whether only this machine can connect there.
    fn is_here(&self) -> bool {
        match self {
            Self::Tcp(place) => {
                place.to_socket_addrs().is_ok_and(|found| are_here(&found.collect::<Vec<_>>()))
            }
            Self::Unix(_) => true,
        }
    }

    /// Connects to a collector that takes a recording.
    pub(crate) fn connect(&self, access: &Access) -> Result<Sender> {
        let secret = access.read()?;
        let secret = secret.as_ref();
        let failed =
            || format!("nobody listens at {self}; next: teeperf collect --listen {self} -o FOLDER");
        let sender = match self {
            Self::Tcp(place) => {
                // Looked up once: what is checked is what is connected to.
                let found: Vec<_> = place.to_socket_addrs().with_context(failed)?.collect();
                access.check_here(self, are_here(&found))?;
                let stream = TcpStream::connect(&found[..]).with_context(failed)?;
                stream.set_write_timeout(Some(PATIENCE)).context("a connection")?;
                Sender::begin(stream, secret)
            }
            Self::Unix(path) => {
                let stream = UnixStream::connect(path).with_context(failed)?;
                stream.set_write_timeout(Some(PATIENCE)).context("a connection")?;
                Sender::begin(stream, secret)
            }
        };
        sender.with_context(|| self.to_string())
    }

    /// Listens; and the place as it is then, with the port that was chosen where 0 was named.
    pub(crate) fn listen(&self) -> Result<(Listener, Self)> {
        let failed = || format!("cannot listen at {self}");
        match self {
            Self::Tcp(place) => {
                let listener = TcpListener::bind(place).with_context(failed)?;
                let place = listener.local_addr().with_context(failed)?.to_string();
                Ok((Listener::Tcp(listener), Self::Tcp(place)))
            }
            Self::Unix(path) => {
                let is_left_behind = UnixStream::connect(path)
                    .is_err_and(|error| error.kind() == std::io::ErrorKind::ConnectionRefused);
                let is_socket = std::fs::symlink_metadata(path)
                    .is_ok_and(|about| about.file_type().is_socket());
                if is_left_behind && is_socket {
                    // Of one that was killed. What cannot be removed is said to be in use.
                    let _ = std::fs::remove_file(path);
                }
                let listener = UnixListener::bind(path).with_context(failed)?;
                Ok((Listener::Unix(listener), self.clone()))
            }
        }
    }
}

impl std::fmt::Display for Place {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Tcp(place) => write!(f, "tcp:{place}"),
            Self::Unix(path) => write!(f, "unix:{}", path.display()),
        }
    }
}

/// Whether all addresses are this machine's own alone.
fn are_here(found: &[SocketAddr]) -> bool {
    !found.is_empty() && found.iter().all(|at| at.ip().to_canonical().is_loopback())
}

/// Waits for connections.
pub(crate) enum Listener {
    Tcp(TcpListener),
    Unix(UnixListener),
}

impl Listener {
    /// The next connection, who it is, and the address of another machine.
    pub(crate) fn accept(&self) -> std::io::Result<(Box<dyn Stream>, String, Option<IpAddr>)> {
        Ok(match self {
            Self::Tcp(listener) => {
                let (stream, from) = listener.accept()?;
                notice_who_is_gone(&stream);
                stream.set_write_timeout(Some(PATIENCE))?;
                let ip = from.ip().to_canonical();
                (Box::new(stream), from.to_string(), Some(ip).filter(|ip| !ip.is_loopback()))
            }
            Self::Unix(listener) => {
                let (stream, _) = listener.accept()?;
                stream.set_write_timeout(Some(PATIENCE))?;
                (Box::new(stream), "a program of this machine".into(), None)
            }
        })
    }
}

/// Has the system end a connection to a machine that is gone without a word, within two minutes. Programs may call nothing for
/// days, so what is not sent tells nothing.
fn notice_who_is_gone(stream: &TcpStream) {
    let options = [
        (libc::SOL_SOCKET, libc::SO_KEEPALIVE, 1),
        (libc::IPPROTO_TCP, libc::TCP_KEEPIDLE, 60),
        (libc::IPPROTO_TCP, libc::TCP_KEEPINTVL, 10),
        (libc::IPPROTO_TCP, libc::TCP_KEEPCNT, 6),
    ];
    for (level, option, value) in options {
        let value: libc::c_int = value;
        // SAFETY: the number is read, and as long as is said. What is refused was not needed.
        unsafe {
            let size = size_of_val(&value) as libc::socklen_t;
            libc::setsockopt(stream.as_raw_fd(), level, option, (&raw const value).cast(), size);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_read() {
        let tcp = |place: &str| Ok(Place::Tcp(place.into()));
        assert_eq!(Place::parse("tcp:board:7000"), tcp("board:7000"));
        assert_eq!(Place::parse("tcp:[::1]:0"), tcp("[::1]:0"));
        assert_eq!(Place::parse("unix:/run/x"), Ok(Place::Unix("/run/x".into())));
        for (place, is_here) in [
            ("tcp:127.0.0.1:0", true),
            ("tcp:[::1]:7377", true),
            ("unix:/run/x", true),
            ("tcp:0.0.0.0:7377", false),
            ("tcp:192.0.2.1:7377", false),
            ("tcp:[::]:7377", false),
        ] {
            let place = Place::parse(place).unwrap();
            let access = |insecure| Access { secret: None, insecure }.check(&place);
            assert_eq!(access(false).is_ok(), is_here, "{place}");
            assert!(access(true).is_ok());
        }
        for text in ["", "board:7000", "tcp:board", "tcp::1", "tcp:board:x", "unix:", "udp:a:1"] {
            assert!(Place::parse(text).is_err(), "{text}");
        }
    }
}
