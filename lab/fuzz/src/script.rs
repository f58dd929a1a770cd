//! Scripts that drive the two machines of a connection: a stream of frames as the peer sends them. Between them are
//! frames of kinds that the wire does not have, which are instructions: what time and the application do. So golden
//! vectors are seeds as they are.

use std::time::Duration;

use bytes::Bytes;

/// Kinds of frames from here on are instructions.
const FIRST_INSTRUCTION: u8 = 0xF0;

/// The longest step of time: beyond every timeout of the wire.
const MAX_STEP: Duration = Duration::from_secs(60);

/// One step of a script.
pub(crate) enum Step {
    /// The peer sends this.
    Frame(Bytes),
    /// Something else happens.
    Do {
        /// Instruction, counted from 0.
        what: u8,
        /// To which operation, in the order of their numbers.
        which: u8,
        /// How much of it.
        amount: u32,
    },
}

impl Step {
    /// The amount as time.
    pub(crate) fn duration(amount: u32) -> Duration {
        Duration::from_millis(u64::from(amount)).min(MAX_STEP)
    }
}

/// Reads a script.
pub(crate) fn steps(script: &[u8]) -> impl Iterator<Item = Step> {
    crate::frames::cut(script, script.len().max(1)).into_iter().map(|frame| match *frame {
        [kind, which, a, b, c, d, ..] if kind >= FIRST_INSTRUCTION => {
            let amount = u32::from_le_bytes([a, b, c, d]);
            Step::Do { what: kind - FIRST_INSTRUCTION, which, amount }
        }
        _ => Step::Frame(frame),
    })
}
