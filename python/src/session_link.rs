//! Participation of a Python program in a viewing session. A task takes part without pause and keeps the newest state; Python
//! reads that state, waits for a newer one, and sends actions.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use array::{Error, ErrorKind, Result};
use client::directories::UserDirectories;
use node::take_part::{SessionAddress, SessionClient, SessionNews};
use pyo3::prelude::*;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::AbortHandle;

use crate::errors::raise;
use crate::runtime::{runtime, wait};

/// Longest time to wait for the session's state after connecting.
const JOIN_TIMEOUT: Duration = Duration::from_secs(10);
/// Most actions that wait for the task; a caller beyond them waits.
const MAX_ACTIONS: usize = 16;
/// Most messages that are kept for Python; older ones are dropped.
const MAX_MESSAGES: usize = 64;
/// Longest wait of one call, which is the same as one without a limit.
const MAX_WAIT: Duration = Duration::from_secs(86_400 * 365);

/// Action of the program, as JSON.
#[derive(Debug, Deserialize)]
#[serde(tag = "do", rename_all = "snake_case")]
enum LinkAction {
    Present,
    EndPresenting,
    HandOver { name: String },
    Remove { name: String },
    Change { view: Map<String, Value> },
    Follow { name: Option<String> },
    StopFollowing,
    Point { place: Option<[f64; 3]>, laser: bool },
    AddNote { text: String, place: Option<[f64; 3]> },
}

impl LinkAction {
    /// Returns the number of a change of the view, else 0.
    fn apply(self, client: &mut SessionClient) -> Result<u64> {
        let done = match self {
            Self::Change { view } => return client.change(view),
            Self::Present => client.present(),
            Self::EndPresenting => client.end_presenting(),
            Self::HandOver { name } => client.hand_over(&name),
            Self::Remove { name } => client.remove(&name),
            Self::Follow { name } => client.follow(name.as_deref()),
            Self::StopFollowing => client.stop_following(),
            Self::Point { place, laser } => client.point(place, laser),
            Self::AddNote { text, place } => client.add_note(&text, place),
        };
        done.map(|()| 0)
    }
}

/// Action on its way to the task, and the way back of its result.
type WaitingAction = (LinkAction, oneshot::Sender<Result<u64>>);

/// Newest state of a session.
struct SessionState {
    you: u32,
    role: Value,
    view: Map<String, Value>,
    people: Value,
    notes: Value,
    leader: Value,
    presents: bool,
    is_heard: bool,
    drawn: u64,
    /// Messages with their numbers, and whether each is a warning.
    messages: VecDeque<(u64, String, bool)>,
    message_count: u64,
    /// Reason why the session ended.
    ended: Option<Error>,
}

impl SessionState {
    fn of(client: &SessionClient) -> Result<Self> {
        let mut state = Self {
            you: client.own().0.0,
            role: Value::Null,
            view: Map::new(),
            people: Value::Null,
            notes: client.notes()?,
            leader: Value::Null,
            presents: false,
            is_heard: false,
            drawn: 0,
            messages: VecDeque::new(),
            message_count: 0,
            ended: None,
        };
        state.update(client);
        Ok(state)
    }

    fn update(&mut self, client: &SessionClient) {
        self.role = json!(client.own().1);
        self.view.clone_from(client.view());
        self.people = json!(client.participants());
        self.leader = json!(client.leader());
        self.presents = client.presents();
        self.is_heard = client.is_heard();
        self.drawn = client.drawn();
    }

    fn take(&mut self, client: &SessionClient, news: SessionNews) -> Result<()> {
        match news {
            SessionNews::Message(text, is_warning) => {
                self.message_count += 1;
                if self.messages.len() >= MAX_MESSAGES {
                    self.messages.pop_front();
                }
                self.messages.push_back((self.message_count, text, is_warning));
            }
            SessionNews::Content => self.notes = client.notes()?,
            SessionNews::View | SessionNews::Participants | SessionNews::Drawn => {}
        }
        self.update(client);
        Ok(())
    }
}

/// A program's place in a session. It leaves when it is closed or dropped.
#[pyclass(frozen, module = "corridor._native")]
pub(crate) struct SessionLink {
    state: Arc<Mutex<SessionState>>,
    /// Number of the newest state.
    version: watch::Receiver<u64>,
    actions: mpsc::Sender<WaitingAction>,
    task: AbortHandle,
}

/// Joins the session of a viewing node under a name, as `corridor session` does.
#[pyfunction]
#[pyo3(signature = (url, name, fingerprint=None))]
pub(crate) fn join_session(
    py: Python<'_>,
    url: &str,
    name: String,
    fingerprint: Option<&str>,
) -> PyResult<SessionLink> {
    let prepare = || {
        let directories = UserDirectories::of_user()?;
        SessionAddress::parse(url, fingerprint, &directories)
    };
    let address = prepare().map_err(|e| raise(py, &e))?;
    wait(py, async move {
        let joining = tokio::time::timeout(JOIN_TIMEOUT, SessionClient::join(&address, &name));
        let client = joining.await.map_err(|_| {
            let secs = JOIN_TIMEOUT.as_secs();
            Error::new(ErrorKind::TimedOut, format!("the node did not answer within {secs} s"))
        })??;
        let state = Arc::new(Mutex::new(SessionState::of(&client)?));
        let (actions, waiting) = mpsc::channel(MAX_ACTIONS);
        let (told, version) = watch::channel(0);
        let task = runtime()?.spawn(take_part(client, Arc::clone(&state), waiting, told)).abort_handle();
        Ok(SessionLink { state, version, actions, task })
    })
}

/// Takes part until the session ends: carries out actions and keeps the state.
async fn take_part(
    mut client: SessionClient,
    state: Arc<Mutex<SessionState>>,
    mut actions: mpsc::Receiver<WaitingAction>,
    version: watch::Sender<u64>,
) {
    let ended = loop {
        tokio::select! {
            action = actions.recv() => {
                // Without senders nobody can see the state any more.
                let Some((action, done)) = action else { return };
                let result = action.apply(&mut client);
                lock(&state).update(&client);
                // A caller who was interrupted does not wait for the result.
                _ = done.send(result);
            }
            news = client.next() => {
                let taken = news.and_then(|news| lock(&state).take(&client, news));
                if let Err(error) = taken {
                    break error;
                }
            }
        }
        version.send_modify(|version| *version += 1);
    };
    lock(&state).ended = Some(ended);
    version.send_modify(|version| *version += 1);
}

/// Returns the error after the program has left.
fn has_left() -> Error {
    Error::new(ErrorKind::Unreachable, "this program has left the session")
}

fn lock(state: &Mutex<SessionState>) -> MutexGuard<'_, SessionState> {
    // A panic elsewhere does not leave the state inconsistent.
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

#[pymethods]
impl SessionLink {
    /// Returns the newest state as JSON, with its number.
    fn state(&self) -> String {
        let version = *self.version.borrow();
        let state = lock(&self.state);
        json!({
            "version": version,
            "you": state.you,
            "role": state.role,
            "view": state.view,
            "people": state.people,
            "notes": state.notes,
            "leader": state.leader,
            "presents": state.presents,
            "is_heard": state.is_heard,
            "drawn": state.drawn,
            "messages": state.messages,
        })
        .to_string()
    }

    /// Waits until the state has another number than `version`; returns false after `timeout_secs`, if that is given.
    ///
    /// # Errors
    /// The error that ended the session, once the last state has been waited for.
    #[pyo3(signature = (version, timeout_secs=None))]
    fn wait(&self, py: Python<'_>, version: u64, timeout_secs: Option<f64>) -> PyResult<bool> {
        let mut watched = self.version.clone();
        let limit =
            timeout_secs.map_or(MAX_WAIT, |secs| Duration::try_from_secs_f64(secs).unwrap_or(MAX_WAIT));
        let limit = limit.min(MAX_WAIT);
        let has_changed = wait(py, async move {
            let newer = watched.wait_for(|now| *now != version);
            match tokio::time::timeout(limit, newer).await {
                Ok(Ok(_)) => Ok(true),
                Ok(Err(_)) => Err(has_left()),
                Err(_) => Ok(false),
            }
        });
        let has_changed = match &lock(&self.state).ended {
            Some(error) => return Err(raise(py, error)),
            None => has_changed?,
        };
        Ok(has_changed)
    }

    /// Carries out an action, JSON; returns the number of a change of the view, else 0. The node's refusal is a message.
    ///
    /// # Errors
    /// Those of the action, and the error that ended the session.
    fn send(&self, py: Python<'_>, action: &str) -> PyResult<u64> {
        let action: LinkAction = serde_json::from_str(action)
            .map_err(|e| raise(py, &Error::invalid(format!("expected an action of a session: {e}"))))?;
        let (actions, state) = (self.actions.clone(), Arc::clone(&self.state));
        wait(py, async move {
            let ended = || {
                let error = lock(&state).ended.clone();
                error.unwrap_or_else(|| {
                    Error::new(ErrorKind::Unreachable, "this program has left the session")
                })
            };
            let (done, result) = oneshot::channel();
            actions.send((action, done)).await.map_err(|_| ended())?;
            result.await.map_err(|_| ended())?
        })
    }

    /// Leaves the session.
    fn close(&self) {
        self.task.abort();
    }
}

impl Drop for SessionLink {
    fn drop(&mut self) {
        self.task.abort();
    }
}
