//! Helpers that several commands share: printing, and conversion of options to the types that `node` takes.

use std::io::Write;
use std::net::{IpAddr, SocketAddr};
use std::path::Path;

use array::{Error, Meaning, Result};
use client::dial::{ConnectOptions, ConnectOptionsText};
use client::directories::UserDirectories;
use client::servers::Sharing;
use client::text::{plain, size};
use client::url::{DEFAULT_PORT, Location, without_tokens};
use link::parse_rate;
use node::assemble::{Context, assemble};
use node::memory::{MIN_BUDGET_BYTES, MemoryBudget, parse_size};
use node::node::{Listen, ServerNode, ServerOptions};
use serde_json::{Value, json};
use server::identity::IdentityChoice;
use server::public_address::ReverseProxy;
use server::stack::Stack;
use server::token::{Admission, Token};
use stream::DrawDevice;

use crate::cli::{self, AccessOptions, DeviceOptions, ListenOptions};
use crate::progress::{self, ProgressOutput};

/// Default port of the viewer's page: the one after the data server's.
const VIEWER_PORT: u16 = DEFAULT_PORT + 1;

/// Minimum length of a user's token that is unlikely to be guessed, in characters.
const SAFE_TOKEN_CHARS: usize = 16;

/// Prints a sentence on standard error, without tokens, because it may be kept in a log. Errors of a closed stream are
/// ignored.
pub(crate) fn say(line: &str) {
    for line in without_tokens(line).lines() {
        writeln!(std::io::stderr(), "{}", plain(line)).unwrap_or_default();
    }
}

/// Prints a line of output.
///
/// # Errors
/// `Io` if the output is closed, as with `corridor info | head`.
pub(crate) fn print(line: &str) -> Result<()> {
    let mut out = std::io::stdout().lock();
    match writeln!(out, "{line}").and_then(|()| out.flush()) {
        // A reader such as `head` has closed the pipe after enough lines.
        Err(e) if e.kind() == std::io::ErrorKind::BrokenPipe => Ok(()),
        done => done.map_err(Error::from),
    }
}

/// Returns the requested memory, or a quarter of the machine's, in bytes. A value below the minimum is raised to it,
/// with a warning.
pub(crate) fn memory(text: Option<&str>) -> Result<u64> {
    let Some(text) = text else { return Ok(MemoryBudget::default_bytes()) };
    let bytes = parse_size(text)?;
    if bytes < MIN_BUDGET_BYTES {
        say(&format!("warning: --memory {text} is raised to {}, the minimum", size(MIN_BUDGET_BYTES)));
    }
    Ok(bytes.max(MIN_BUDGET_BYTES))
}

/// Returns the device that draws.
pub(crate) fn device(options: DeviceOptions) -> DrawDevice {
    match options.device {
        cli::DeviceChoice::Auto => DrawDevice::Auto,
        cli::DeviceChoice::Cpu => DrawDevice::Cpu,
        cli::DeviceChoice::Gpu => DrawDevice::Gpu,
    }
}

/// Returns the options for connecting to other servers.
pub(crate) fn reach(options: &AccessOptions) -> Result<ConnectOptions> {
    let words = ConnectOptionsText {
        link: options.link.as_deref(),
        controller: options.controller.as_deref(),
        compression: options.compression.as_deref(),
        streams: options.streams.as_deref(),
        rails: options.rails.as_deref(),
    };
    words.reach()
}

/// Parses a rate such as `400Mb/s`; returns bytes per second.
pub(crate) fn rate(text: &str) -> Result<f64> {
    parse_rate(text).ok_or_else(|| {
        Error::invalid(format!(
            "expected a rate such as `400Mb/s` (bits) or `50MB/s` (bytes), found `{text}`"
        ))
    })
}

/// Creates the context with which stacks are built; the progress of long work is shown by `progress`.
pub(crate) fn context(
    budget: MemoryBudget,
    cache_dir: Option<&Path>,
    reaching: &AccessOptions,
    progress: ProgressOutput,
) -> Result<Context> {
    let mut directories = UserDirectories::of_user()?;
    if let Some(folder) = cache_dir {
        directories.cache = folder.to_path_buf();
    }
    let sharing = reaching.rule.as_deref().map_or_else(|| Ok(Sharing::default()), str::parse)?;
    let context = Context::new(directories, budget, Some(progress::of_opening(progress)));
    let context = context.with_on_await(progress::of_awaiting(progress));
    if let Some(most) = reaching.receive_rate.as_deref() {
        client::receive_limit::receive_at_most(rate(most)?)?;
    }
    let meaning = reaching.meaning.map(|meaning| match meaning {
        cli::MeaningChoice::Labels => Meaning::Labels,
        cli::MeaningChoice::Intensity => Meaning::Intensity,
    });
    Ok(context.reaching(reach(reaching)?).sharing(sharing).meaning(meaning))
}

/// Opens a user's location; returns also the name of the array in it, if any.
pub(crate) async fn open(location: &str, context: &Context) -> Result<(Stack, String)> {
    let (location, array) = location.parse::<Location>()?.split_array();
    let stack = assemble(&location, context).await?;
    let array = if array.is_empty() { stack.array.clone() } else { array };
    Ok((stack, array))
}

/// Purpose of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ServerPurpose {
    Data,
    Viewing,
    /// Drawing together with another process, which is the viewer and shows progress.
    Assisting,
}

/// Returns the options of a server, with the default memory and port of its purpose.
pub(crate) fn server(
    locations: &[String],
    listening: &ListenOptions,
    purpose: ServerPurpose,
) -> Result<ServerOptions> {
    let bytes = memory(listening.resources.memory.as_deref())?;
    let (budget, port) = match purpose {
        ServerPurpose::Data => (MemoryBudget::serving(bytes), DEFAULT_PORT),
        ServerPurpose::Viewing | ServerPurpose::Assisting => (MemoryBudget::viewing(bytes), VIEWER_PORT),
    };
    // The first lines of a server's output are its exports.
    let progress = match purpose {
        ServerPurpose::Assisting => ProgressOutput::Hidden,
        ServerPurpose::Data | ServerPurpose::Viewing if listening.json => ProgressOutput::JsonAside,
        ServerPurpose::Data | ServerPurpose::Viewing => ProgressOutput::Bar,
    };
    let parsed: Result<Vec<Location>> = locations.iter().map(|l| l.parse()).collect();
    Ok(ServerOptions {
        locations: parsed?,
        listen: listening
            .listen
            .as_deref()
            .map_or(Ok(Listen::Loopback(port)), |text| parse_listen(text, port))?,
        admission: admission(listening)?,
        identity: identity(listening),
        names: Vec::new(),
        proxies: ReverseProxy::new(&listening.public_urls, &listening.trusted_proxies)?,
        explores_folders: purpose == ServerPurpose::Data,
        context: context(budget, listening.resources.cache_dir.as_deref(), &listening.reaching, progress)?,
        peers: Vec::new(),
        waiting_clients: Vec::new(),
        most_bytes_per_sec: None,
    })
}

fn admission(listening: &ListenOptions) -> Result<Admission> {
    if listening.no_token {
        return Ok(Admission::Everybody);
    }
    if let Some(chosen) = listening.token.as_deref().filter(|text| text.len() < SAFE_TOKEN_CHARS) {
        let found = chosen.chars().count();
        say(&format!(
            "warning: the token has {found} characters and may be guessed; use {SAFE_TOKEN_CHARS} or more, or omit it for a \
             random one"
        ));
    }
    let token = listening.token.as_deref().map_or_else(Token::random, Token::chosen)?;
    Ok(Admission::Token(token))
}

fn identity(listening: &ListenOptions) -> IdentityChoice {
    match (&listening.cert, &listening.key) {
        (Some(certificate), Some(key)) => {
            IdentityChoice::Files { certificate: certificate.clone(), key: key.clone() }
        }
        _ => IdentityChoice::Own,
    }
}

/// Parses `127.0.0.1:0`, `[::]:26774`, `0.0.0.0`, `:9000`.
fn parse_listen(text: &str, port: u16) -> Result<Listen> {
    let bad = || {
        Error::invalid(format!(
            "expected an address such as `127.0.0.1:0` or `0.0.0.0:26774`, found `{text}`"
        ))
    };
    if let Some(port) = text.strip_prefix(':') {
        let port = port.parse().map_err(|_| bad())?;
        return Ok(Listen::At(SocketAddr::from(([127, 0, 0, 1], port))));
    }
    let address = text.parse::<SocketAddr>();
    let address = address.or_else(|_| text.parse::<IpAddr>().map(|ip| SocketAddr::new(ip, port)));
    address.map(Listen::At).map_err(|_| bad())
}

/// Returns the first line of a viewer with `--json`.
pub(crate) fn viewer_line(node: &ServerNode) -> Value {
    json!({"url": node.page(), "fingerprint": node.fingerprint, "token": node.token()})
}

/// Returns the warning about an isovalue outside the range of the values.
pub(crate) fn warning_outside(isovalue: f64, least: f64, greatest: f64) -> String {
    format!("warning: the isovalue {isovalue} is outside of the values, which go from {least} to {greatest}")
}

/// Prints warnings about the port: if the default port is taken, and if other hosts can reach it.
pub(crate) fn warn_of_port(node: &ServerNode) {
    if let Some(taken) = node.taken_port {
        say(&format!("port {taken} is taken; listening on {} instead", node.address.port()));
    }
    if node.address.ip().is_loopback() {
        return;
    }
    if node.is_self_signed {
        say(&format!(
            "warning: the certificate is self-signed; browsers will warn of it. Its fingerprint is {}",
            node.fingerprint
        ));
    }
    if node.token().is_none() {
        say("warning: everybody who can reach this port may read the data (--no-token)");
    }
}
