// SPDX-License-Identifier: MIT
//! Sleeping, and futures with a time limit.

use crate::call::{outcome, Call, Kind};
use crate::driver::{Driver, Room};
use flexsc_sys as sys;
use std::future::Future;
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};
use std::time::Duration;

/// A time in nanoseconds, limited to the library's maximum.
pub fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos())
        .unwrap_or(u64::MAX)
        .min(u64::MAX - 1)
}

/// A timer.
pub struct Sleep(());

impl Kind for Sleep {
    type Output = io::Result<()>;

    fn finish(self, ret: i64, _: &Room, _: &Rc<Driver>) -> io::Result<()> {
        outcome(ret).map(drop)
    }
}

pub fn sleep(driver: &Rc<Driver>, time: Duration) -> Call<Sleep> {
    let ns = nanoseconds(time);
    // SAFETY: A timer has no pointers.
    unsafe {
        Call::post(driver, Sleep(()), |raw, cb, _| {
            sys::flexsc_loop_timer(raw, cb, ns)
        })
    }
}

/// A future with a time limit. Its output is the future's, or `TimedOut`.
#[must_use = "it does nothing unless polled"]
#[derive(Debug)]
pub struct Timeout<F> {
    sleep: Call<Sleep>,
    future: F,
}

impl<F> Timeout<F> {
    pub(crate) fn new(sleep: Call<Sleep>, future: F) -> Timeout<F> {
        Timeout { sleep, future }
    }
}

impl<F: Future> Future for Timeout<F> {
    type Output = io::Result<F::Output>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        // SAFETY: The future is pinned with self; the sleep may move.
        let this = unsafe { self.get_unchecked_mut() };
        // SAFETY: As above.
        let future = unsafe { Pin::new_unchecked(&mut this.future) };
        if let Poll::Ready(output) = future.poll(context) {
            return Poll::Ready(Ok(output));
        }
        match Pin::new(&mut this.sleep).poll(context) {
            Poll::Ready(Ok(())) => Poll::Ready(Err(io::ErrorKind::TimedOut.into())),
            Poll::Ready(Err(error)) => Poll::Ready(Err(error)),
            Poll::Pending => Poll::Pending,
        }
    }
}
