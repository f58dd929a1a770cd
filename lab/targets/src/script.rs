//! Scripts for the two state machines of a connection: a stream of frames from the peer. Frames of kinds that the protocol
//! does not define are instructions: time passes, or the application acts. Golden vectors are valid scripts.

use std::time::Duration;

use bytes::Bytes;

/// Smallest kind of a frame that is an instruction.
const FIRST_INSTRUCTION: u8 = 0xF0;

/// Longest step of time: beyond every timeout of the protocol.
const MAX_STEP: Duration = Duration::from_secs(60);

/// One step of a script.
pub(crate) enum ScriptStep {
    /// Frame from the peer.
    Frame(Bytes),
    /// Instruction.
    Do {
        /// Number of the instruction, from 0.
        what: u8,
        /// Index of the operation among the open ones.
        which: u8,
        /// Bytes, messages or milliseconds, depending on the instruction.
        amount: u32,
    },
}

impl ScriptStep {
    /// Amount of an instruction as time, in milliseconds.
    pub(crate) fn duration(amount: u32) -> Duration {
        Duration::from_millis(u64::from(amount)).min(MAX_STEP)
    }
}

/// Reads a script.
pub(crate) fn steps(script: &[u8]) -> impl Iterator<Item = ScriptStep> {
    crate::frames::cut(script, script.len().max(1)).into_iter().map(|frame| match *frame {
        [kind, which, a, b, c, d, ..] if kind >= FIRST_INSTRUCTION => {
            let amount = u32::from_le_bytes([a, b, c, d]);
            ScriptStep::Do { what: kind - FIRST_INSTRUCTION, which, amount }
        }
        _ => ScriptStep::Frame(frame),
    })
}
