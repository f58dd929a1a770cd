//! Declaration of `corridor session`, and of the roles of guests.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};

/// Role of guests in a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum GuestChoice {
    /// Changes their own view, presents it, pins notes and saves bookmarks.
    Steer,
    /// Follows others, chats and points.
    Watch,
}

/// `corridor session`
#[derive(Args, Debug)]
#[command(after_long_help = include_str!("help/session.txt"))]
pub(crate) struct SessionOptions {
    /// Link of the session, as `corridor view` printed it.
    #[arg(value_name = "URL")]
    pub(crate) url: String,
    /// Name of this participant, as shown to the others.
    #[arg(long, default_value = "program", value_name = "NAME")]
    pub(crate) name: String,
    /// Fingerprint of the server's certificate, if it is self-signed: `sha256:` and 64 hexadecimal digits.
    #[arg(long, value_name = "FINGERPRINT")]
    pub(crate) fingerprint: Option<String>,
    /// Action of this participant.
    #[command(subcommand)]
    pub(crate) action: SessionAction,
}

/// Actions of a participant.
#[derive(Debug, Subcommand)]
pub(crate) enum SessionAction {
    /// Set the view of all participants.
    Set(SetOptions),
    /// Follow a participant and print each view, one JSON object a line.
    Follow(FollowOptions),
    /// Show a pointer at a place.
    Cursor(CursorOptions),
    /// Record the views of a participant as a journey for `corridor render --journey`.
    Record(RecordOptions),
    /// Print the notes of the session, or add one.
    Notes(NotesOptions),
}

/// `corridor session URL set`
#[derive(Args, Debug)]
pub(crate) struct SetOptions {
    /// Fields of the view as JSON, such as `{"time": 3}`; `-` reads one object a line from standard input.
    ///
    /// This participant presents while the command runs, so all others see its view unless they opted out. They keep
    /// the last view afterwards. Not possible with a link for watching, or while somebody else presents.
    #[arg(value_name = "JSON|-")]
    pub(crate) view: String,
}

/// `corridor session URL follow`
#[derive(Args, Debug)]
pub(crate) struct FollowOptions {
    /// Name of the participant [default: the presenter, else the first one who may change the view].
    #[arg(value_name = "NAME")]
    pub(crate) leader: Option<String>,
    /// Number of views after which the command ends [default: none].
    #[arg(long, value_name = "COUNT")]
    pub(crate) count: Option<u64>,
}

/// `corridor session URL cursor`
#[derive(Args, Debug)]
pub(crate) struct CursorOptions {
    /// Place in world space, X,Y,Z; `-` reads one place a line from standard input.
    #[arg(value_name = "X,Y,Z|-", allow_hyphen_values = true)]
    pub(crate) place: String,
    /// Time for which the last place is shown, seconds.
    #[arg(long, default_value_t = 5.0, value_name = "SECONDS")]
    pub(crate) seconds: f64,
    /// Show a laser pointer, which draws everybody's attention.
    #[arg(long)]
    pub(crate) laser: bool,
}

/// `corridor session URL record`
#[derive(Args, Debug)]
pub(crate) struct RecordOptions {
    /// File to write, JSON: a list of views.
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: PathBuf,
    /// Name of the participant [default: the presenter, else the first one who may change the view].
    #[arg(long, value_name = "NAME")]
    pub(crate) leader: Option<String>,
    /// Time to record, seconds.
    #[arg(long, default_value_t = 60.0, value_name = "SECONDS")]
    pub(crate) seconds: f64,
    /// Most views per second.
    #[arg(long, default_value_t = 5.0, value_name = "NUMBER")]
    pub(crate) rate: f64,
}

/// `corridor session URL notes`
#[derive(Args, Debug)]
pub(crate) struct NotesOptions {
    /// Add a note with this text, in the view that a new participant sees.
    #[arg(long, value_name = "TEXT")]
    pub(crate) add: Option<String>,
    /// Place of the new note in world space.
    #[arg(long, value_name = "X,Y,Z", requires = "add", allow_hyphen_values = true)]
    pub(crate) at: Option<String>,
    /// Print JSON instead of Markdown.
    #[arg(long)]
    pub(crate) json: bool,
}
