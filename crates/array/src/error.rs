//! Error type of the project. It crosses every stage and the wire unchanged: a stable kind, whether a retry can help, a message for
//! people, and the operations that it passed through.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Result with the project's [`Error`].
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Kind of an error, as a number that is stable across versions and on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[repr(u16)]
pub enum ErrorKind {
    /// A bug or a state that should not occur.
    Internal = 1,
    /// The request itself is wrong: bad selection, unknown name, bad parameters.
    Invalid = 2,
    /// The named thing does not exist.
    NotFound = 3,
    /// Bytes that violate the format or protocol.
    Corrupt = 4,
    /// Understood, but not supported by this version or build.
    Unsupported = 5,
    /// Token missing, wrong, or not allowed to do this.
    Denied = 6,
    /// The data changed since it was described; describe it again.
    Stale = 7,
    /// A limit (memory, size, count) would be exceeded.
    TooLarge = 8,
    /// The asker went away or withdrew the request.
    Cancelled = 9,
    /// Unreachable peer or broken connection.
    Unreachable = 10,
    /// The deadline passed.
    TimedOut = 11,
    /// The operating system refused (disk, permissions).
    Io = 12,
    /// The receiver is busy; ask again later.
    Busy = 13,
}

impl ErrorKind {
    /// All kinds, in the order of their numbers.
    pub const ALL: [Self; 13] = [
        Self::Internal,
        Self::Invalid,
        Self::NotFound,
        Self::Corrupt,
        Self::Unsupported,
        Self::Denied,
        Self::Stale,
        Self::TooLarge,
        Self::Cancelled,
        Self::Unreachable,
        Self::TimedOut,
        Self::Io,
        Self::Busy,
    ];

    /// The stable number.
    #[must_use]
    pub fn code(self) -> u16 {
        self as u16
    }

    /// The kind with this number; unknown numbers (from a newer peer) read as `Internal`.
    #[must_use]
    pub fn from_code(code: u16) -> Self {
        Self::ALL.into_iter().find(|k| k.code() == code).unwrap_or(Self::Internal)
    }
}

/// Whether doing the same again can help.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Retry {
    /// The answer would be the same.
    Never,
    /// The operation may succeed later or on another connection.
    MayHelp,
}

/// An error for people and programs.
///
/// ```
/// use corridor_array::{Error, ErrorKind};
/// let e = Error::invalid("selection has 2 axes, array `u` has 3").context("read");
/// assert_eq!(e.kind(), ErrorKind::Invalid);
/// assert_eq!(e.to_string(), "read: selection has 2 axes, array `u` has 3");
/// ```
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Error(Box<ErrorInner>);

#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
struct ErrorInner {
    kind: ErrorKind,
    retry: Retry,
    message: String,
    /// Innermost first.
    context: Vec<String>,
}

impl Error {
    /// Longest message and context line of an error, bytes; longer ones are cut, because errors are sent over the network.
    pub const MAX_TEXT_BYTES: usize = 2048;
    /// Most context lines of an error.
    pub const MAX_CONTEXT: usize = 16;

    /// Creates an error of `kind`. `message`: lower case, without a final dot.
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        let retry = match kind {
            ErrorKind::Unreachable | ErrorKind::TimedOut | ErrorKind::Busy => Retry::MayHelp,
            _ => Retry::Never,
        };
        Self(Box::new(ErrorInner { kind, retry, message: cut(message.into()), context: Vec::new() }))
    }

    /// The request is wrong.
    pub fn invalid(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Invalid, message)
    }

    /// Creates an error for bytes that violate their format.
    pub fn corrupt(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Corrupt, message)
    }

    /// Known, but not supported.
    pub fn unsupported(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Unsupported, message)
    }

    /// The thing does not exist.
    pub fn not_found(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::NotFound, message)
    }

    /// A limit would be exceeded.
    pub fn too_large(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::TooLarge, message)
    }

    /// A broken invariant that was caught.
    pub fn internal(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Internal, message)
    }

    /// The request was withdrawn.
    #[must_use]
    pub fn cancelled() -> Self {
        Self::new(ErrorKind::Cancelled, "the request was withdrawn")
    }

    /// Adds the operation that failed; the newest context is printed first. A context equal to the newest one is not added again.
    ///
    /// ```
    /// let missing = corridor_array::Error::not_found("no such file").context("open `x`");
    /// assert_eq!(missing.context("open `x`").context("serve").to_string(), "serve: open `x`: no such file");
    /// ```
    #[must_use]
    pub fn context(mut self, operation: impl Into<String>) -> Self {
        let operation = cut(operation.into());
        if self.0.context.len() < Self::MAX_CONTEXT && self.0.context.last() != Some(&operation) {
            self.0.context.push(operation);
        }
        self
    }

    /// Overrides whether a retry can help.
    #[must_use]
    pub fn with_retry(mut self, retry: Retry) -> Self {
        self.0.retry = retry;
        self
    }

    /// Returns the kind of the error.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        self.0.kind
    }

    /// Whether a retry can help.
    #[must_use]
    pub fn retry(&self) -> Retry {
        self.0.retry
    }

    /// The sentence without its context.
    #[must_use]
    pub fn message(&self) -> &str {
        &self.0.message
    }

    /// Operations that it passed through, innermost first.
    #[must_use]
    pub fn places(&self) -> &[String] {
        &self.0.context
    }
}

fn cut(mut text: String) -> String {
    if text.len() > Error::MAX_TEXT_BYTES {
        let mut end = Error::MAX_TEXT_BYTES;
        while !text.is_char_boundary(end) {
            end -= 1;
        }
        text.truncate(end);
    }
    text
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for place in self.0.context.iter().rev() {
            write!(f, "{place}: ")?;
        }
        f.write_str(&self.0.message)
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}({self})", self.0.kind)
    }
}

impl std::error::Error for Error {}

impl From<std::io::Error> for Error {
    fn from(e: std::io::Error) -> Self {
        use std::io::ErrorKind as Io;
        let kind = match e.kind() {
            Io::NotFound => ErrorKind::NotFound,
            Io::PermissionDenied => ErrorKind::Denied,
            Io::TimedOut => ErrorKind::TimedOut,
            Io::UnexpectedEof => ErrorKind::Corrupt,
            Io::ConnectionRefused
            | Io::ConnectionReset
            | Io::ConnectionAborted
            | Io::BrokenPipe
            | Io::NotConnected
            | Io::HostUnreachable
            | Io::NetworkUnreachable => ErrorKind::Unreachable,
            Io::StorageFull | Io::QuotaExceeded | Io::FileTooLarge => ErrorKind::TooLarge,
            _ => ErrorKind::Io,
        };
        Self::new(kind, e.to_string())
    }
}
