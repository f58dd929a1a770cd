//! One process of an MPI program as a rank.
//!
//! MPI is called by one thread at a time, any thread. No thread waits within a call: a thread that waits for a message,
//! or for room to send one, polls, and lets other threads call in between.

#![expect(unsafe_code, reason = "calls of C")]

use std::ffi::{CStr, c_char, c_int, c_void};
use std::ptr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use array::{Error, ErrorKind, Result};
use compose::Communicator;

use crate::launched;

/// Maximum number of messages in flight from one process to another in a lane; further ones wait. The same as between
/// threads.
pub const MAX_UNDER_WAY: usize = compose::MAX_WAITING;
/// Number of polls without a pause; later a waiting process yields the core, with pauses of up to
/// `LONGEST_PAUSE`.
const POLLS: u32 = 256;
/// Longest pause between two polls of a waiting process.
const LONGEST_PAUSE: Duration = Duration::from_micros(200);
/// Number of polls, about a second, after which a process counts as idle and pauses longer.
const IDLE_AFTER_POLLS: u32 = 5_000;
const IDLE_PAUSE: Duration = Duration::from_millis(2);
/// Number of attempts to lock MPI before all processes are aborted without the lock: a tenth of a second.
const ABORT_POLLS: u32 = 50;
/// Lane of a process itself.
const FIRST_LANE: c_int = 0;
/// Size of the buffer for error texts, in bytes: at least `MPI_MAX_ERROR_STRING` of any implementation.
const ERROR_BYTES: usize = 1024;

unsafe extern "C" {
    fn corridor_mpi_start(rank: *mut c_int, size: *mut c_int) -> c_int;
    fn corridor_mpi_finish() -> c_int;
    fn corridor_mpi_abort(code: c_int);
    fn corridor_mpi_send(
        data: *const c_void,
        bytes: c_int,
        to: c_int,
        lane: c_int,
        request: *mut *mut c_void,
    ) -> c_int;
    fn corridor_mpi_is_sent(request: *mut c_void, sent: *mut c_int) -> c_int;
    fn corridor_mpi_wait(request: *mut c_void) -> c_int;
    fn corridor_mpi_look(
        from: c_int,
        lane: c_int,
        is_there: *mut c_int,
        message: *mut *mut c_void,
        bytes: *mut c_int,
    ) -> c_int;
    fn corridor_mpi_receive(message: *mut c_void, data: *mut c_void, bytes: c_int) -> c_int;
    fn corridor_mpi_describe(code: c_int, text: *mut c_char, room: c_int) -> c_int;
}

/// This process among those of an MPI program. MPI is finalized with it, after all messages are sent.
#[derive(Debug)]
pub struct Process {
    rank: usize,
    size: usize,
    /// Locked during each call of MPI.
    sending: Mutex<Vec<PendingSend>>,
}

/// A message in flight: MPI reads it until the request is completed.
#[derive(Debug)]
struct PendingSend {
    request: *mut c_void,
    to: c_int,
    lane: c_int,
    _message: Vec<u8>,
}

// SAFETY: a request may be completed on any thread, one at a time: it is behind the mutex of `Process`.
unsafe impl Send for PendingSend {}

/// Joins the other processes that a launcher has started with this one; `None` if it was started alone. To be called
/// once.
///
/// # Errors
/// `Internal` if MPI cannot be started.
pub fn join() -> Result<Option<Process>> {
    if launched().is_none_or(|count| count < 2) {
        return Ok(None);
    }
    let (mut rank, mut size) = (0, 0);
    // SAFETY: both pointers are valid for the call.
    checked(unsafe { corridor_mpi_start(&raw mut rank, &raw mut size) }, "starting MPI")?;
    let number =
        |value: c_int| usize::try_from(value).map_err(|_| Error::internal(format!("MPI says {value}")));
    Ok(Some(Process { rank: number(rank)?, size: number(size)?, sending: Mutex::default() }))
}

impl Process {
    /// Aborts all processes: the others would wait for this one. `code` is the exit code of the launcher.
    pub fn abort(&self, code: u8) {
        // A thread that panicked in a call, or a call that does not return, is not waited for.
        let _alone = (0..ABORT_POLLS).find_map(|_| {
            let alone = self.sending.try_lock();
            alone.map_err(|_| std::thread::sleep(IDLE_PAUSE)).ok()
        });
        // SAFETY: MPI was started; no pointers.
        unsafe { corridor_mpi_abort(c_int::from(code)) }
    }

    fn calls(&self) -> MutexGuard<'_, Vec<PendingSend>> {
        self.sending.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the number of another rank as MPI takes it.
    fn other(&self, rank: usize) -> Result<c_int> {
        let number = c_int::try_from(rank).ok().filter(|_| rank < self.size && rank != self.rank);
        number.ok_or_else(|| {
            Error::invalid(format!(
                "expected another of {} ranks, found {rank} at rank {}",
                self.size, self.rank
            ))
        })
    }

    /// Returns another lane between the same ranks, whose messages may overtake those of other lanes: each number is
    /// one lane.
    #[must_use]
    pub fn lane(self: &Arc<Self>, number: u8) -> ProcessLane {
        ProcessLane { process: Arc::clone(self), number: FIRST_LANE + 1 + c_int::from(number) }
    }

    /// Polls once for a message.
    fn look(&self, from: c_int, lane: c_int) -> Result<Option<Vec<u8>>> {
        let mut sending = self.calls();
        give_back(&mut sending)?;
        let (mut is_there, mut bytes, mut message) = (0, 0, ptr::null_mut());
        // SAFETY: all pointers are valid for the call.
        let code =
            unsafe { corridor_mpi_look(from, lane, &raw mut is_there, &raw mut message, &raw mut bytes) };
        checked(code, "looking for a message")?;
        if is_there == 0 {
            return Ok(None);
        }
        let mut data = vec![0; usize::try_from(bytes).unwrap_or(0)];
        // SAFETY: `data` has room for `bytes`, and `message` was returned by the preceding call.
        checked(unsafe { corridor_mpi_receive(message, data.as_mut_ptr().cast(), bytes) }, "receiving")?;
        Ok(Some(data))
    }
}

impl Process {
    fn send_in(&self, lane: c_int, to: usize, message: Vec<u8>) -> Result<()> {
        let to = self.other(to)?;
        let bytes = c_int::try_from(message.len()).map_err(|_| {
            Error::too_large(format!("expected a message of less than 2 GiB, found {} bytes", message.len()))
        })?;
        let mut pause = Backoff::default();
        loop {
            let mut sending = self.calls();
            give_back(&mut sending)?;
            if sending.iter().filter(|other| (other.to, other.lane) == (to, lane)).count() < MAX_UNDER_WAY {
                let (data, mut request) = (message.as_ptr().cast(), ptr::null_mut());
                // SAFETY: the message is kept at its address until the request is completed.
                checked(unsafe { corridor_mpi_send(data, bytes, to, lane, &raw mut request) }, "sending")?;
                sending.push(PendingSend { request, to, lane, _message: message });
                return Ok(());
            }
            drop(sending);
            pause.make();
        }
    }

    fn receive_in(&self, lane: c_int, from: usize) -> Result<Vec<u8>> {
        let from = self.other(from)?;
        let mut pause = Backoff::default();
        loop {
            if let Some(message) = self.look(from, lane)? {
                return Ok(message);
            }
            pause.make();
        }
    }
}

/// Growing pauses between polls.
#[derive(Default)]
struct Backoff {
    looks: u32,
}

impl Backoff {
    fn make(&mut self) {
        self.looks = self.looks.saturating_add(1);
        match self.looks.checked_sub(POLLS) {
            None => std::thread::yield_now(),
            Some(more) => {
                let longest = if self.looks < IDLE_AFTER_POLLS { LONGEST_PAUSE } else { IDLE_PAUSE };
                std::thread::sleep(Duration::from_micros(u64::from(more) + 1).min(longest));
            }
        }
    }
}

impl Communicator for Process {
    fn rank(&self) -> usize {
        self.rank
    }

    fn size(&self) -> usize {
        self.size
    }

    fn send(&self, to: usize, message: Vec<u8>) -> Result<()> {
        self.send_in(FIRST_LANE, to, message)
    }

    fn receive(&self, from: usize) -> Result<Vec<u8>> {
        self.receive_in(FIRST_LANE, from)
    }
}

/// One lane of a process; see [`Process::lane`].
#[derive(Debug)]
pub struct ProcessLane {
    process: Arc<Process>,
    number: c_int,
}

impl Communicator for ProcessLane {
    fn rank(&self) -> usize {
        self.process.rank
    }

    fn size(&self) -> usize {
        self.process.size
    }

    fn send(&self, to: usize, message: Vec<u8>) -> Result<()> {
        self.process.send_in(self.number, to, message)
    }

    fn receive(&self, from: usize) -> Result<Vec<u8>> {
        self.process.receive_in(self.number, from)
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let sending = self.sending.get_mut().unwrap_or_else(PoisonError::into_inner);
        for PendingSend { request, _message, .. } in sending.drain(..) {
            // SAFETY: the request is not completed, and its message lives. An error at the end has no consequence.
            unsafe { corridor_mpi_wait(request) };
        }
        // SAFETY: no message is in flight, and there is no other reference to this process.
        unsafe { corridor_mpi_finish() };
    }
}

/// Completes the requests of messages that are sent.
fn give_back(sending: &mut Vec<PendingSend>) -> Result<()> {
    let mut failed = 0;
    sending.retain(|message| {
        let mut is_sent = 0;
        // SAFETY: the request is not completed; when it is, the message is dropped with it.
        let code = unsafe { corridor_mpi_is_sent(message.request, &raw mut is_sent) };
        failed = if code == 0 { failed } else { code };
        is_sent == 0 && code == 0
    });
    checked(failed, "sending")
}

fn checked(code: c_int, what: &str) -> Result<()> {
    if code == 0 {
        return Ok(());
    }
    let mut text: [c_char; ERROR_BYTES] = [0; ERROR_BYTES];
    let room = c_int::try_from(ERROR_BYTES - 1).unwrap_or(0);
    // SAFETY: there is room for as many bytes, and one more, which stays 0.
    let is_told = unsafe { corridor_mpi_describe(code, text.as_mut_ptr(), room) } == 0;
    // SAFETY: the last byte is 0.
    let told = unsafe { CStr::from_ptr(text.as_ptr()) }.to_string_lossy();
    let reason = if is_told { told.into_owned() } else { format!("code {code}") };
    Err(Error::new(ErrorKind::Internal, format!("{what} by MPI: {reason}")))
}
