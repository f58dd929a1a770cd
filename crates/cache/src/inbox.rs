//! Inbox of the cache's task. Any thread can put calls, look-ups and notices of freed memory into it without waiting.

use std::sync::Arc;

use array::{Block, BlockKey, Completion, Content, Want};
use bytes::Bytes;
use parking_lot::Mutex;
use tokio::sync::{Notify, mpsc, oneshot};

use crate::table::FetchTicket;

/// Most wants of all callers of a cache that wait for an answer at a time; more are refused as busy.
pub const MAX_WAITING: usize = 1 << 20;

/// Block as the cache holds and returns it.
pub(crate) type CachedBlock = Arc<Block>;

/// Call of `blocks`.
pub(crate) struct CacheCall {
    pub(crate) wants: Vec<Want>,
    /// Channel with room for an answer to each want.
    pub(crate) answers: mpsc::Sender<Completion>,
}

/// Look-up of blocks that may be in the cache.
pub(crate) struct Peek {
    pub(crate) keys: Vec<BlockKey>,
    /// Answer: all blocks, or `None`.
    pub(crate) reply: oneshot::Sender<Option<Vec<CachedBlock>>>,
}

/// Messages received since the task last took them.
#[derive(Default)]
pub(crate) struct InboxMail {
    pub(crate) calls: Vec<CacheCall>,
    pub(crate) peeks: Vec<Peek>,
    pub(crate) freed: Vec<(BlockKey, FetchTicket)>,
}

#[derive(Default)]
struct InboxState {
    mail: InboxMail,
    /// Accepted wants that are not settled yet.
    waiting: usize,
}

#[derive(Default)]
pub(crate) struct CacheInbox {
    state: Mutex<InboxState>,
    arrived: Notify,
}

impl CacheInbox {
    /// Accepts a call, or returns its wants if there are too many.
    pub(crate) fn call(&self, call: CacheCall) -> Result<(), Vec<Want>> {
        let mut state = self.state.lock();
        let waiting = state.waiting + call.wants.len();
        if waiting > MAX_WAITING {
            return Err(call.wants);
        }
        state.waiting = waiting;
        state.mail.calls.push(call);
        drop(state);
        self.arrived.notify_one();
        Ok(())
    }

    pub(crate) fn peek(&self, peek: Peek) {
        self.state.lock().mail.peeks.push(peek);
        self.arrived.notify_one();
    }

    fn freed(&self, key: BlockKey, ticket: FetchTicket) {
        self.state.lock().mail.freed.push((key, ticket));
        self.arrived.notify_one();
    }

    /// Records that this number of wants were answered or withdrawn.
    pub(crate) fn settled(&self, wants: usize) {
        self.state.lock().waiting -= wants;
    }

    pub(crate) fn take(&self) -> InboxMail {
        std::mem::take(&mut self.state.lock().mail)
    }

    /// Waits until a message has arrived since the last wait.
    pub(crate) async fn arrived(&self) {
        self.arrived.notified().await;
    }
}

/// Bytes of a block, which notify the cache when the last holder drops them.
struct CountedBytes {
    bytes: Bytes,
    key: BlockKey,
    ticket: FetchTicket,
    inbox: Arc<CacheInbox>,
}

impl AsRef<[u8]> for CountedBytes {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl Drop for CountedBytes {
    fn drop(&mut self) {
        self.inbox.freed(self.key, self.ticket);
    }
}

/// Wraps a block so that its memory reports to `inbox` when it is freed. A block that is not covered has no
/// memory and reports nothing.
pub(crate) fn counted(block: &Block, ticket: FetchTicket, inbox: &Arc<CacheInbox>) -> CachedBlock {
    let content = match &block.content {
        Content::NotCovered => Content::NotCovered,
        Content::Data { bytes, range } => {
            let (key, inbox) = (block.key, Arc::clone(inbox));
            let counted = CountedBytes { bytes: bytes.clone(), key, ticket, inbox };
            Content::Data { bytes: Bytes::from_owner(counted), range: *range }
        }
    };
    Arc::new(Block { key: block.key, content })
}
