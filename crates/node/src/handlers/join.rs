//! Operation `join`: participation in the session of a viewing node.

use std::sync::Arc;

use array::{Error, ErrorKind, Result};
use bytes::Bytes;
use link::OperationChange;
use server::guests::GuestRole;
use server::ops::{BeginOutcome, Handler, OperationCall};
use server::token::{Right, Token};
use session::{Item, Role};
use stream::{Participant, Session};
use wire::ops;

/// Name of the one session of a node.
const MAIN: &str = "main";

/// Answers `join`: adds the client to the session.
pub(crate) struct JoinHandler {
    session: Arc<Session>,
}

impl JoinHandler {
    /// Creates the handler of this session.
    #[must_use]
    pub(crate) fn new(session: Arc<Session>) -> Self {
        Self { session }
    }
}

impl Handler for JoinHandler {
    type Work = session::JoinParams;

    fn name(&self) -> &'static str {
        ops::JOIN
    }

    fn begin(&self, parameters: Bytes) -> Result<BeginOutcome<session::JoinParams>> {
        let request = session::JoinParams::parse(&parameters)?;
        if !["", MAIN].contains(&request.session.as_str()) {
            return Err(Error::not_found(format!(
                "expected the session `{MAIN}`, found `{}`",
                request.session
            )));
        }
        Ok(BeginOutcome::Work(request))
    }

    async fn run(&self, request: session::JoinParams, call: &OperationCall) -> Result<()> {
        let role = match call.right {
            Right::Guest(GuestRole::Steer) => Role::Steer,
            Right::Guest(GuestRole::Watch) | Right::ReadZarr => Role::Watch,
            Right::Everything => Role::Own,
        };
        let secret = Token::random()?.secret().to_owned();
        let participant = self.session.join_with_secret(&request, role, secret, connection_of(call))?;
        tokio::select! {
            biased;
            () = receive_notes(call, &participant) => Err(Error::cancelled()),
            result = send_messages(call, &participant) => result,
        }
    }

    fn handles_changes(&self) -> bool {
        true
    }
}

/// Passes the client's notes to the session until the client leaves.
async fn receive_notes(call: &OperationCall, participant: &Participant) {
    loop {
        match call.operation.changed().await {
            OperationChange::Note(text) => participant.note(&text),
            OperationChange::Adjusted(_) => {}
            OperationChange::Cancelled => return,
        }
    }
}

/// Sends the messages of the session. While the connection has no room, newer items replace older ones.
async fn send_messages(call: &OperationCall, participant: &Participant) -> Result<()> {
    loop {
        call.operation.room().await;
        let Some(out) = participant.next().await else { return Ok(()) };
        if let Item::Joined { resume, .. } = &out.item {
            register(call, resume)?;
        }
        if let Item::Removed { by } = &out.item {
            let reason = format!("{by} removed you from this session");
            call.operation.item(out.body()?.into(), out.bulk).await?;
            return Err(Error::new(ErrorKind::Denied, reason));
        }
        // Further pictures of a page end with it.
        call.guest.as_ref().map_or(Ok(()), |guest| guest.check())?;
        call.operation.item(out.body()?.into(), out.bulk).await?;
    }
}

/// Returns the number of the client's connection, which is not 0.
fn connection_of(call: &OperationCall) -> u64 {
    call.client.0 + 1
}

/// Makes the secret of a guest who has joined a token of their own.
fn register(call: &OperationCall, secret: &str) -> Result<()> {
    let (Some(guest), Right::Guest(role)) = (&call.guest, call.right) else { return Ok(()) };
    if secret.is_empty() { Ok(()) } else { guest.joined(secret, role, connection_of(call)) }
}
