//! A TCP relay that lets only so many bytes per second through to the client: a server on a slow link.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use array::Result;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Mutex;
use tokio::task::JoinSet;
use tokio::time::Instant;

/// Bytes moved at a time: some milliseconds' worth at the rates of interest, more than a timer's error.
const PIECE_BYTES: usize = 64 << 10;
/// Time that may be made up for after a timer was late.
const MAX_CREDIT: Duration = Duration::from_millis(5);

/// Relays connections until dropped.
pub(super) struct Relay {
    /// Address that clients connect to.
    pub(super) address: SocketAddr,
    _task: JoinSet<()>,
}

impl Relay {
    /// Starts a relay in front of `server`; all connections share the rate.
    pub(super) async fn start(server: SocketAddr, rate_bytes_per_sec: f64) -> Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let address = listener.local_addr()?;
        let pace = Arc::new(RelayPace { rate_bytes_per_sec, free_at: Mutex::new(Instant::now()) });
        let mut task = JoinSet::new();
        task.spawn(async move {
            let mut connections = JoinSet::new();
            while let Ok((client, _)) = listener.accept().await {
                let Ok(server) = TcpStream::connect(server).await else { continue };
                let (from_client, to_client) = client.into_split();
                let (from_server, to_server) = server.into_split();
                connections.spawn(copy(from_client, to_server, None));
                connections.spawn(copy(from_server, to_client, Some(Arc::clone(&pace))));
            }
        });
        Ok(Self { address, _task: task })
    }
}

/// Time at which the next bytes may pass.
struct RelayPace {
    rate_bytes_per_sec: f64,
    free_at: Mutex<Instant>,
}

impl RelayPace {
    async fn pass(&self, bytes: usize) {
        let mut free_at = self.free_at.lock().await;
        let earliest = Instant::now().checked_sub(MAX_CREDIT).unwrap_or(*free_at);
        *free_at = (*free_at).max(earliest) + Duration::from_secs_f64(bytes as f64 / self.rate_bytes_per_sec);
        let until = *free_at;
        drop(free_at);
        tokio::time::sleep_until(until).await;
    }
}

/// Copies until either side ends, and then ends the other.
async fn copy(mut from: OwnedReadHalf, mut to: OwnedWriteHalf, pace: Option<Arc<RelayPace>>) {
    let mut piece = vec![0; PIECE_BYTES];
    while let Ok(bytes @ 1..) = from.read(&mut piece).await {
        if let Some(pace) = &pace {
            pace.pass(bytes).await;
        }
        if to.write_all(&piece[..bytes]).await.is_err() {
            return;
        }
    }
}
