//! Credit in turns: where a receive rate is divided among several connections, a step of each one's credit is
//! sent at its assigned time. The times are assigned elsewhere, over all connections.

use std::time::Instant;

/// Parameters of returning credit in turns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InTurns {
    /// Bulk bytes that may be in flight at first, until [`limit_window`](crate::Client::limit_window) is
    /// called.
    pub window_bytes: u64,
    /// Credit that one turn grants, bytes; less where little more is reserved.
    pub step_bytes: u64,
}

#[derive(Debug)]
pub(crate) struct Turns {
    step_bytes: u64,
    /// Time of the assigned turn, if one was requested.
    at: Option<Instant>,
    /// Credit whose turn has come and that was not sent yet, bytes.
    due_bytes: u64,
    /// Bulk that arrived since the last report, bytes.
    arrived_bytes: u64,
}

impl Turns {
    /// Creates the state. `most_bytes`: limit of all windows, at least one step.
    pub(crate) fn new(step_bytes: u64, most_bytes: u64) -> Self {
        Self { step_bytes: step_bytes.min(most_bytes / 4).max(1), at: None, due_bytes: 0, arrived_bytes: 0 }
    }

    /// Returns whether to request a turn while this credit is owed.
    pub(crate) fn is_wanted(&self, owed_bytes: u64) -> bool {
        self.at.is_none() && owed_bytes.saturating_sub(self.due_bytes) >= self.step_bytes
    }

    pub(crate) fn take(&mut self, now: Instant, at: Instant) {
        self.at = Some(at);
        self.handle_timeout(now);
    }

    pub(crate) fn poll_timeout(&self) -> Option<Instant> {
        self.at
    }

    pub(crate) fn handle_timeout(&mut self, now: Instant) {
        if self.at.take_if(|at| *at <= now).is_some() {
            self.due_bytes += self.step_bytes;
        }
    }

    /// Credit that may be sent now: what was owed when the turn was requested may not be owed any more, where
    /// the window fell.
    pub(crate) fn due_bytes(&self, owed_bytes: u64) -> u64 {
        self.due_bytes.min(owed_bytes)
    }

    pub(crate) fn handle_granted(&mut self, bytes: u64) {
        self.due_bytes = self.due_bytes.saturating_sub(bytes);
    }

    pub(crate) fn handle_arrived(&mut self, bytes: u64) {
        self.arrived_bytes += bytes;
    }

    pub(crate) fn arrived_bytes(&self) -> u64 {
        self.arrived_bytes
    }

    pub(crate) fn take_arrived(&mut self) -> u64 {
        std::mem::take(&mut self.arrived_bytes)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use array::{Priority, Urgency};
    use bytes::Bytes;

    use super::*;
    use crate::{Client, ClientConfig, Frame, Machine, Server, ServerConfig, ServerEvent};

    const WINDOW: u64 = 4000;
    const STEP: u64 = 1000;

    fn pass(now: Instant, from: &mut impl Machine, to: &mut impl Machine) {
        while let Some(message) = from.poll_transmit(now) {
            to.handle_frame(now, message.into_bytes()).unwrap();
        }
    }

    /// Creates a client whose window was filled and of which nothing was taken.
    fn full(now: Instant, in_turns: Option<InTurns>) -> Client {
        let config = ClientConfig { window_bytes: WINDOW, in_turns, ..ClientConfig::default() };
        let mut client = Client::new(config, now).unwrap();
        let mut server = Server::new(ServerConfig::default(), now).unwrap();
        pass(now, &mut client, &mut server);
        assert!(matches!(server.poll_event(), Some(ServerEvent::Hello(_))));
        server.accept();
        pass(now, &mut server, &mut client);
        let op = client.request("all", Bytes::new(), Urgency::of(Priority::NORMAL)).unwrap();
        pass(now, &mut client, &mut server);
        while server.poll_event().is_some() {}
        server.item(op, Bytes::new(), Bytes::from(vec![1; 8000]).into()).unwrap();
        pass(now, &mut server, &mut client);
        while client.poll_event().is_some() {}
        client
    }

    /// Returns the credit that a client grants now.
    fn credit(now: Instant, client: &mut Client) -> u64 {
        let frames = std::iter::from_fn(|| client.poll_transmit(now));
        frames
            .map(|frame| match Frame::decode(frame.into_bytes()).unwrap() {
                Frame::Credit { bytes } => bytes,
                _ => 0,
            })
            .sum()
    }

    #[test]
    #[expect(clippy::disallowed_methods, reason = "where time begins does not matter")]
    fn credit_leaves_when_its_turn_comes_and_what_is_not_owed_any_more_does_not() {
        let now = Instant::now();
        let mut client = full(now, Some(InTurns { window_bytes: WINDOW, step_bytes: STEP }));
        assert_eq!((client.held_bytes(), client.wants_turn()), (WINDOW, false));
        assert_eq!(
            (client.arrived_bytes(), client.take_arrived(), client.arrived_bytes()),
            (WINDOW, WINDOW, 0)
        );
        client.grant(STEP - 1);
        assert!(!client.wants_turn(), "less than a step");
        client.grant(1 + STEP);
        assert!(client.wants_turn() && client.owes_credit() && credit(now, &mut client) == 0);
        let later = now + Duration::from_millis(7);
        client.take_turn(now, later);
        assert_eq!(
            (client.wants_turn(), client.owes_credit(), client.poll_timeout()),
            (false, false, Some(later))
        );
        client.handle_timeout(later);
        assert_eq!((client.owes_credit(), credit(later, &mut client)), (true, STEP), "not all that is owed");
        assert!(client.wants_turn(), "for the rest");
        client.limit_window(WINDOW - STEP / 2);
        client.take_turn(later, now);
        assert_eq!(credit(later, &mut client), STEP / 2, "a turn that is past comes at once");
        assert_eq!(client.held_bytes(), WINDOW - STEP / 2);
    }

    #[test]
    #[expect(clippy::disallowed_methods, reason = "where time begins does not matter")]
    fn without_turns_nobody_waits() {
        let now = Instant::now();
        let mut client = full(now, None);
        client.grant(WINDOW);
        client.limit_window(1);
        client.take_turn(now, now + Duration::from_secs(1));
        assert_eq!((client.wants_turn(), client.arrived_bytes(), client.window_bytes()), (false, 0, WINDOW));
        assert_eq!(credit(now, &mut client), WINDOW);
        let small = InTurns { window_bytes: WINDOW, step_bytes: 1 << 20 };
        let mut client = full(now, Some(small));
        client.grant(WINDOW);
        assert!(client.wants_turn(), "a step is never more than can be owed");
    }
}
