//! One client's connection: the hello message, then its operations. The most urgent operations begin first. An
//! operation that is not answered at once continues in a task of its own, or in one task with others that became ready
//! with it.

use std::ops::RangeInclusive;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use array::{Error, ErrorKind, Result};
use client::paths::ConnectionMonitor;
use futures::future::OptionFuture;
use link::{Flow, Link, Operation, WaitingLimit};
use tokio::task::JoinSet;
use wire::limits::HIGHEST_TIER;
use wire::{Hello, ServerConfig};

use crate::answer_memory::ClientId;
use crate::connections::ConnectionSlot;
use crate::metrics;
use crate::ops::operation_limit::{OperationLimit, OperationPermit, too_many_parameters};
use crate::ops::{NodeState, OperationCall, OperationRegistry};
use crate::response_compression::ResponseCompression;
use crate::token::{Admission, Right};

/// Minimum and maximum number of operations of one client in flight: 20,000 small reads are in flight at 125,000 per
/// second and a round trip of 150 ms.
const OPERATIONS: RangeInclusive<u64> = 4_096..=65_536;
/// Bytes of response memory per operation of one client. A waiting operation takes about 300 bytes.
const ANSWER_BYTES_PER_OPERATION: u64 = 8 << 10;
/// Number of clients that may have the maximum number of waiting operations at the same time; beyond that, operations
/// of all clients are refused as busy, except for the first ones of each ([`link::OWN_WAITING_OPERATIONS`]).
const CLIENTS_IN_FULL: u64 = 4;

/// The parts of a node that a connection needs.
pub struct Service {
    /// Rule that decides which clients are admitted.
    pub admission: Admission,
    /// Operations that are answered.
    pub registry: OperationRegistry,
    /// State that all operations of the node share.
    pub shared: Arc<NodeState>,
    clients: AtomicU64,
    waiting: WaitingLimit,
}

impl Service {
    /// Creates a service without clients.
    #[must_use]
    pub fn new(admission: Admission, registry: OperationRegistry, shared: Arc<NodeState>) -> Self {
        let places = CLIENTS_IN_FULL * u64::from(most_operations(&shared));
        Self { admission, registry, shared, clients: AtomicU64::new(0), waiting: WaitingLimit::new(places) }
    }

    /// Returns the id of a new client.
    pub(crate) fn next_client(&self) -> ClientId {
        ClientId(self.clients.fetch_add(1, Ordering::Relaxed))
    }

    /// Admits the client, with the controller that it requests. A client whose address is not validated stays a
    /// visitor.
    fn admit(
        hello: &Hello,
        admission: &Admission,
        flow: Option<&dyn Flow>,
        slot: &ConnectionSlot,
    ) -> Result<Right> {
        let right = admission.check(&hello.token)?;
        if let Some(choice) = link::requested_controller(&hello.capabilities)? {
            let none = "this link protocol does not support a choice of controllers; connect with `quic`";
            flow.ok_or_else(|| Error::unsupported(none))?.control(choice)?;
        }
        if flow.is_none_or(Flow::is_proven) {
            slot.admit()?;
        }
        Ok(right)
    }

    /// Serves one link until it ends. A client that presents the token is no longer a visitor.
    ///
    /// # Errors
    /// The reason that the client was refused, or that it sent no hello message.
    ///
    /// # Cancel safety
    /// Dropping the future ends the connection and withdraws its operations.
    pub async fn serve(self: Arc<Self>, link: Link, slot: &ConnectionSlot) -> Result<()> {
        self.serve_with(link, slot, &self.admission).await
    }

    /// Serves a client as [`serve`](Self::serve) does, with `admission` instead of the service's own rule.
    ///
    /// # Errors
    /// As [`serve`](Self::serve).
    ///
    /// # Cancel safety
    /// As [`serve`](Self::serve).
    pub(crate) async fn serve_with(
        &self,
        link: Link,
        slot: &ConnectionSlot,
        admission: &Admission,
    ) -> Result<()> {
        let config =
            ServerConfig { most_operations: most_operations(&self.shared), ..ServerConfig::default() };
        let flow = link.flow();
        let (connection, driver) = link::serve_among(link, config, self.waiting.clone())?;
        let mut driving = JoinSet::new();
        driving.spawn(driver);
        let hello = connection.hello().await?;
        let admitted = Self::admit(&hello, admission, flow.as_deref(), slot).and_then(|right| {
            let guest = admission.guests().and_then(|guests| guests.pass(&hello.token));
            // Their link may have been replaced just now.
            if matches!(right, Right::Guest(_)) && guest.is_none() {
                return Err(Error::new(ErrorKind::Denied, "this link is not valid any more"));
            }
            Ok((right, guest))
        });
        let (right, guest) = match admitted {
            Ok(admitted) => admitted,
            Err(error) => {
                if error.kind() == ErrorKind::Denied {
                    metrics::add(&self.shared.metrics.denied, 1);
                }
                connection.refuse(error.clone());
                // The driver ends when the refusal is sent.
                while driving.join_next().await.is_some() {}
                return Err(error);
            }
        };
        let paths = &self.shared.paths;
        let known = match &flow {
            Some(flow) => paths.known(&**flow).await.up,
            None => None,
        };
        // If this host remembers nothing, the value that the client sent is used, as when it requests a rate.
        let known = known.or_else(|| link::remembered_path(&hello.capabilities));
        if let (Some(flow), Some(known)) = (&flow, known) {
            flow.remember(known);
        }
        connection.accept();
        metrics::add(&self.shared.metrics.clients, 1);
        tracing::debug!(peer = connection.peer(), program = hello.program, ?known, "client");
        let mut watching = JoinSet::new();
        let client = self.next_client();
        let compression = Arc::new(ResponseCompression::new(
            &hello,
            known.map(|known| known.rate_bytes_per_sec),
            flow.clone(),
        ));
        // The address of an admitted client is validated at once, and only once.
        let mut validating = flow.as_ref().map(|flow| flow.proven());
        let mut running = JoinSet::new();
        let limit = OperationLimit::new();
        let most_together = |name: &str| self.registry.most_together(name);
        loop {
            let least_tier = limit.least_tier();
            tokio::select! {
                biased;
                Some(ended) = running.join_next() => report(ended),
                Some(is_proven) = OptionFuture::from(validating.as_mut()), if validating.is_some() => {
                    validating = None;
                    if !is_proven {
                        continue;
                    }
                    if let Err(error) = slot.admit() {
                        connection.close(error.clone());
                        while driving.join_next().await.is_some() {}
                        return Err(error);
                    }
                    // Not earlier: the address may be forged, and its path would then be another host's.
                    ConnectionMonitor::begin(paths, flow.clone()).map(|begun| watching.spawn(begun.run()));
                }
                () = limit.ended(), if least_tier > 0 => {}
                operations = connection.next_together(least_tier, most_together), if least_tier <= HIGHEST_TIER => {
                    let Some(mut operations) = operations else { return Ok(()) };
                    let permits = limit.begin(operations.iter().map(Operation::parameter_bytes));
                    let refused = operations.split_off(permits.len());
                    refused.iter().for_each(|operation| operation.fail(too_many_parameters()));
                    let call = |(operation, permit): (Operation, OperationPermit)| OperationCall {
                        permit,
                        operation,
                        client,
                        right,
                        guest: guest.clone(),
                        node: Arc::clone(&self.shared),
                        flow: flow.clone(),
                        compression: Arc::clone(&compression),
                    };
                    for rest in self.registry.begin(operations.into_iter().zip(permits).map(call).collect()) {
                        running.spawn(rest);
                    }
                    tokio::task::consume_budget().await;
                }
            }
        }
    }
}

fn most_operations(shared: &NodeState) -> u32 {
    let fitting = shared.answer_memory.capacity_bytes() / ANSWER_BYTES_PER_OPERATION;
    u32::try_from(fitting.clamp(*OPERATIONS.start(), *OPERATIONS.end())).unwrap_or(u32::MAX)
}

/// Logs a panic in a task, which is a defect. Its operation failed when it was dropped; the others continue.
fn report(ended: std::result::Result<(), tokio::task::JoinError>) {
    if let Err(e) = ended
        && e.is_panic()
    {
        tracing::error!(error = %Error::internal(e.to_string()), "an operation panicked");
    }
}
