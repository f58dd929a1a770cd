//! Timers with a resolution of a tenth of a millisecond. The timers of the runtime tick once a millisecond,
//! which is too coarse for a paced connection; the system's timers, as descriptors that the runtime polls
//! beside its sockets, wake the task on the thread that would have slept there.

use std::pin::Pin;
use std::task::{Context, Waker};
use std::time::Instant;

use tokio::runtime::Handle;
use tokio::time::{Sleep, sleep_until};

/// Timer of one task.
#[derive(Default)]
pub(super) struct WakeTimer(Option<TimerSource>);

enum TimerSource {
    #[cfg(target_os = "linux")]
    Fine(timer::TimerFd),
    /// Timer of tokio, for systems without a finer one and for processes without a free descriptor.
    Coarse(Pin<Box<Sleep>>),
}

impl WakeTimer {
    /// Wakes `waker` at `at`, instead of at the time set before; the task may be woken too early, and then
    /// asks again. To be called within the runtime; outside of it the task is woken at once.
    pub(super) fn wake_at(&mut self, now: Instant, at: Instant, waker: &Waker) {
        if Handle::try_current().is_err() {
            return waker.wake_by_ref();
        }
        let mut context = Context::from_waker(waker);
        match self.0.get_or_insert_with(|| TimerSource::new(at)) {
            #[cfg(target_os = "linux")]
            TimerSource::Fine(timer) => timer.wake_in(at.saturating_duration_since(now), &mut context),
            TimerSource::Coarse(sleep) => {
                sleep.as_mut().reset(at.into());
                if sleep.as_mut().poll(&mut context).is_ready() {
                    waker.wake_by_ref();
                }
            }
        }
    }
}

impl TimerSource {
    fn new(at: Instant) -> Self {
        #[cfg(target_os = "linux")]
        if let Ok(timer) = timer::TimerFd::new() {
            return Self::Fine(timer);
        }
        Self::Coarse(Box::pin(sleep_until(at.into())))
    }
}

#[cfg(target_os = "linux")]
mod timer {
    use std::io;
    use std::os::fd::OwnedFd;
    use std::task::{Context, Poll};
    use std::time::Duration;

    use rustix::time::{
        Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create,
        timerfd_settime,
    };
    use tokio::io::Interest;
    use tokio::io::unix::AsyncFd;

    /// Timer descriptor that the runtime polls like a socket.
    pub(super) struct TimerFd(AsyncFd<OwnedFd>);

    impl TimerFd {
        pub(super) fn new() -> io::Result<Self> {
            let flags = TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC;
            let timer = timerfd_create(TimerfdClockId::Monotonic, flags)?;
            #[expect(unsafe_code, reason = "the runtime wants a promise about the descriptor")]
            // SAFETY: the descriptor is open, and stays the same one until the registration, which owns it, is gone.
            let registered = unsafe { AsyncFd::register_with_interest(timer, Interest::READABLE) };
            Ok(Self(registered.map_err(io::Error::from)?))
        }

        /// Wakes the task of `context` after this time, instead of at the time set before.
        pub(super) fn wake_in(&self, after: Duration, context: &mut Context<'_>) {
            // An expiration of the earlier time is cleared first, because it could be taken for the new one.
            // It is always polled, because the runtime may be about to report the earlier expiration and then
            // forgets the waker.
            while let Poll::Ready(ready) = self.0.poll_read_ready(context) {
                let Ok(mut ready) = ready else { return context.waker().wake_by_ref() };
                ready.clear_ready();
            }
            // A value of zero would disarm the timer.
            let after = after.max(Duration::from_nanos(1));
            let value = Timespec {
                tv_sec: after.as_secs().try_into().unwrap_or(i64::MAX),
                tv_nsec: after.subsec_nanos().into(),
            };
            let once = Itimerspec { it_interval: Timespec::default(), it_value: value };
            if timerfd_settime(&self.0, TimerfdTimerFlags::empty(), &once).is_err() {
                context.waker().wake_by_ref();
            }
        }
    }
}
