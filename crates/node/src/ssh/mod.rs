//! Server side of `ssh://`: serves one data set on standard input and output, until they close, to the client that
//! started this process.

mod stdio;

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use array::{Error, ErrorKind, Result};
use bytes::BytesMut;
use client::ssh::greeting::{DirectAddress, ErrorReport, Greeting, MAX_LINE_BYTES, OpenRequest};
use client::url::Location;
use server::connection::Service;
use server::connections::{Connections, Limits};
use server::identity::IdentityChoice;
use server::ops::{NodeState, OperationRegistry};
use server::public_address::ReverseProxy;
use server::token::{Admission, Token};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};

use crate::assemble::Context;
use crate::node::{self, Listen, ServerNode, ServerOptions};

/// Timeout for the request, which the client sends at once.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(10);
/// Maximum number of bytes buffered while the data set is being opened; far more than a client sends before the
/// greeting.
const MAX_EARLY_BYTES: usize = 8 << 20;
/// Environment variable in which sshd passes the addresses and ports of both ends of the connection.
const CONNECTION_VARIABLE: &str = "SSH_CONNECTION";

/// Serves the path that the client requests, until the connection ends.
///
/// # Errors
/// `Invalid` if this process was not started by `ssh://`. Errors of opening are sent to the client.
pub async fn serve(context: Context, registry: OperationRegistry) -> Result<()> {
    let (mut input, mut output) = stdio::take()?;
    let mut early = BytesMut::new();
    let request = tokio::time::timeout(REQUEST_TIMEOUT, read_request(&mut input, &mut early)).await;
    let request =
        request.unwrap_or_else(|_| Err(Error::new(ErrorKind::TimedOut, "no request arrived in time")))?;
    let (location, array) = location(&request.path).split_array();
    let options = ServerOptions {
        locations: vec![location],
        listen: Listen::At(SocketAddr::new(local_address().unwrap_or(IpAddr::V4(Ipv4Addr::LOCALHOST)), 0)),
        admission: Admission::Token(Token::random()?),
        identity: IdentityChoice::Own,
        names: Vec::new(),
        proxies: ReverseProxy::default(),
        explores_folders: false,
        context,
        peers: Vec::new(),
        waiting_clients: Vec::new(),
        most_bytes_per_sec: None,
    };
    let opened = tokio::select! {
        biased;
        opened = node::open(&options) => opened,
        () = read_ahead(&mut input, &mut early) => return Ok(()),
    };
    let (greeting, ready) = match opened {
        Ok(shared) => {
            let node =
                if request.direct { listen_directly(&options, &shared, &registry).await } else { None };
            (greeting(array, node.as_ref()), Some((shared, node)))
        }
        Err(error) => (Greeting { error: Some(ErrorReport::from(&error)), ..greeting(array, None) }, None),
    };
    // On a line of its own, after any output of the login.
    output.write_all(format!("\n{}", greeting.line()?).as_bytes()).await?;
    let Some((shared, node)) = ready else { return Ok(()) };
    let service = Arc::new(Service::new(Admission::Everybody, registry, shared));
    let slot = Connections::new(Limits::default()).enter(IpAddr::V4(Ipv4Addr::LOCALHOST));
    let stream = tokio::io::join(std::io::Cursor::new(early.freeze()).chain(input), output);
    let channel = service.serve(link::carrier::tcp::over(stream, "ssh"), &slot);
    let port = async {
        match node {
            Some(node) => node.run().await,
            None => std::future::pending().await,
        }
    };
    tokio::select! {
        ended = channel => ended,
        () = port => Ok(()),
    }
}

/// Reads the request, which is the first line; bytes after it stay in `early`.
async fn read_request(input: &mut (impl AsyncRead + Unpin), early: &mut BytesMut) -> Result<OpenRequest> {
    let end = loop {
        if let Some(end) = early.iter().position(|&b| b == b'\n') {
            break end;
        }
        if early.len() > MAX_LINE_BYTES || input.read_buf(early).await? == 0 {
            return Err(Error::corrupt("expected a request in JSON as the first line"));
        }
    };
    let line = early.split_to(end + 1);
    OpenRequest::read(&line)
}

/// Buffers input in `early`; returns when the client has closed the connection.
async fn read_ahead(input: &mut (impl AsyncRead + Unpin), early: &mut BytesMut) {
    while early.len() < MAX_EARLY_BYTES {
        match input.read_buf(early).await {
            Ok(0) | Err(_) => return,
            Ok(_) => {}
        }
    }
    std::future::pending().await
}

/// Interprets a text as a path on this machine, also if it has the form of another location.
fn location(path: &str) -> Location {
    let path = match path.strip_prefix("/~/").or_else(|| path.strip_prefix("~/")) {
        Some(below) => std::env::var_os("HOME").map_or_else(|| PathBuf::from("."), PathBuf::from).join(below),
        None => PathBuf::from(path),
    };
    Location::Path(path)
}

/// Returns the address of this machine to which the ssh client connected.
fn local_address() -> Option<IpAddr> {
    let connection = std::env::var(CONNECTION_VARIABLE).ok()?;
    connection.split_whitespace().nth(2)?.parse().ok()
}

/// Listens on a port for direct connections; `None` if that is not possible, which is not an error.
async fn listen_directly(
    options: &ServerOptions,
    shared: &Arc<NodeState>,
    registry: &OperationRegistry,
) -> Option<ServerNode> {
    local_address()?;
    match node::start_unrecorded(options, Arc::clone(shared), registry.clone()).await {
        Ok(node) => Some(node),
        Err(error) => {
            tracing::info!(%error, "no port for a direct link");
            None
        }
    }
}

fn greeting(array: String, node: Option<&ServerNode>) -> Greeting {
    let direct = node.and_then(|node| {
        let token = node.token()?.to_owned();
        Some(DirectAddress { address: node.address, token, fingerprint: node.fingerprint.clone() })
    });
    let program = concat!("corridor ", env!("CARGO_PKG_VERSION")).to_owned();
    Greeting { program, array, direct, error: None }
}
