//! One client's connection: hello, then its operations. They begin in the order of the requests; what is not answered
//! at once goes on in a task of its own.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use array::{Error, ErrorKind, Result};
use link::Link;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use wire::ServerConfig;

use crate::gate::ClientId;
use crate::lobby::Visit;
use crate::ops::{Call, Registry, Shared};
use crate::token::Admission;

/// Operations of one client under way; far more than any client of ours asks at once.
const MAX_OPERATIONS: u32 = 4096;
/// Bytes of their parameters; ours take less than 1 KiB each.
const MAX_PARAMETER_BYTES: usize = 4 << 20;

/// Everything a connection needs of its node.
pub struct Service {
    /// Who may come in.
    pub admission: Admission,
    /// What is answered.
    pub registry: Registry,
    /// What there is.
    pub shared: Arc<Shared>,
    clients: AtomicU64,
}

impl Service {
    /// A service without clients yet.
    #[must_use]
    pub fn new(admission: Admission, registry: Registry, shared: Arc<Shared>) -> Self {
        Self { admission, registry, shared, clients: AtomicU64::new(0) }
    }

    /// A name for one more client.
    pub(crate) fn next_client(&self) -> ClientId {
        ClientId(self.clients.fetch_add(1, Ordering::Relaxed))
    }

    /// Serves one link until it ends. Whoever shows the token is no visitor any more.
    ///
    /// # Errors
    /// Why the client was turned away, or never said hello.
    ///
    /// # Cancel safety
    /// Dropping it ends the connection and withdraws its operations.
    pub async fn serve(self: Arc<Self>, link: Link, visit: &Visit) -> Result<()> {
        let config = ServerConfig { most_operations: MAX_OPERATIONS, ..ServerConfig::default() };
        let (connection, driver) = link::serve(link, config)?;
        let mut driving = JoinSet::new();
        driving.spawn(driver);
        let hello = connection.hello().await?;
        if let Err(error) = self.admission.check(&hello.token).and_then(|()| visit.admit()) {
            connection.refuse(error.clone());
            // The driver ends when the refusal is sent.
            while driving.join_next().await.is_some() {}
            return Err(error);
        }
        connection.accept();
        tracing::debug!(peer = connection.peer(), program = hello.program, "client");
        let client = self.next_client();
        let mut running = JoinSet::new();
        let parameters = Arc::new(Semaphore::new(MAX_PARAMETER_BYTES));
        loop {
            tokio::select! {
                biased;
                Some(ended) = running.join_next() => report(ended),
                operation = connection.next() => {
                    let Some(operation) = operation else { return Ok(()) };
                    let size = u32::try_from(operation.parameters().len()).unwrap_or(u32::MAX);
                    let Ok(kept) = Arc::clone(&parameters).try_acquire_many_owned(size) else {
                        operation.fail(too_many_parameters());
                        continue;
                    };
                    let call = Call { operation, client, node: Arc::clone(&self.shared) };
                    if let Some(rest) = self.registry.begin(call) {
                        running.spawn(async move {
                            let _kept = kept;
                            rest.await;
                        });
                    }
                    tokio::task::consume_budget().await;
                }
            }
        }
    }
}

fn too_many_parameters() -> Error {
    let what = format!("expected at most {MAX_PARAMETER_BYTES} bytes of parameters under way, found more");
    Error::new(ErrorKind::Busy, what)
}

/// A task that panicked is a bug of ours; its operation failed when it was dropped, and the others go on.
fn report(ended: std::result::Result<(), tokio::task::JoinError>) {
    if let Err(e) = ended
        && e.is_panic()
    {
        tracing::error!(error = %Error::internal(e.to_string()), "an operation ended in a panic");
    }
}
