// SPDX-License-Identifier: MIT
//! A posted call as a future.

use crate::driver::{Abandoned, Driver, Room, Ticket};
use crate::file::Fd;
use crate::time::nanoseconds;
use flexsc_sys as sys;
use std::fmt;
use std::future::Future;
use std::io;
use std::os::raw::c_int;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};
use std::time::Duration;

const ENOMEM: c_int = 12;

/// The resources that a call owns until its end, and its output.
pub trait Kind: Sized + 'static {
    type Output;
    /// Does dropping the future cancel the call?
    const CANCELS: bool = true;

    /// Make the output from the kernel's result or a negative error number.
    fn finish(self, ret: i64, room: &Room, driver: &Rc<Driver>) -> Self::Output;

    /// Make the output of a call that was never posted.
    fn refused(self, error: i32, driver: &Rc<Driver>) -> Self::Output {
        self.finish(-i64::from(error), &[0; 32], driver)
    }

    /// Called when the call ends after its future was dropped.
    fn forgotten(self, _ret: i64, _driver: &Rc<Driver>) {}
}

impl<K: Kind> Abandoned for K {
    fn ended(self: Box<Self>, ret: i64, driver: &Rc<Driver>) {
        (*self).forgotten(ret, driver);
    }
}

enum Stage {
    Posted(Ticket),
    /// Not posted, because of this error.
    Refused(Rc<Driver>, i32),
    Over,
}

/// A posted call, as a future of its result and its buffer.
///
/// Dropping it requests cancellation, and doesn't wait for the call's end. Memory that
/// the call uses is kept until then.
#[must_use = "dropping a call cancels it"]
pub struct Call<K: Kind> {
    stage: Stage,
    // None after the result was returned.
    kind: Option<K>,
}

// The resources of a call are never pinned.
impl<K: Kind> Unpin for Call<K> {}

impl<K: Kind> Call<K> {
    /// # Safety
    ///
    /// As for [`Driver::post`]: the arguments point to the room, or to memory that
    /// lives as long as `kind`, even if `kind` is moved.
    pub(crate) unsafe fn post(
        driver: &Rc<Driver>,
        kind: K,
        function: impl FnOnce(*mut sys::flexsc_loop, *mut sys::flexsc_cb, *mut Room) -> c_int,
    ) -> Call<K> {
        // SAFETY: The caller upholds the contract. The kind is dropped or returned only
        // after the call's end: see finish(), and drop(). A forgotten kind is never
        // dropped.
        let stage = match unsafe { driver.post(function) } {
            Ok(ticket) => Stage::Posted(ticket),
            Err(error) => Stage::Refused(driver.clone(), error),
        };
        Call {
            stage,
            kind: Some(kind),
        }
    }

    /// A call that isn't posted.
    pub(crate) fn refused(driver: &Rc<Driver>, kind: K, error: i32) -> Call<K> {
        Call {
            stage: Stage::Refused(driver.clone(), error),
            kind: Some(kind),
        }
    }

    /// Request cancellation. The call's result is its true result if it has completed
    /// already, `EINTR` if it was interrupted, and `ECANCELED` if it had no effect.
    pub fn cancel(&self) {
        if let Stage::Posted(ticket) = &self.stage {
            ticket.cancel();
        }
    }

    /// Set a deadline: the call ends with `ETIME` unless it completes within this time
    /// from now.
    ///
    /// This has no effect on a timer ([`Handle::sleep`](crate::Handle::sleep)).
    pub fn deadline(self, time: Duration) -> Call<K> {
        if let Stage::Posted(ticket) = &self.stage {
            if ticket.deadline(nanoseconds(time).max(1)) == -ENOMEM {
                ticket.cancel();
            }
        }
        self
    }

    /// Let the call run to its end without its future.
    pub(crate) fn detach(mut self) {
        self.end(false);
    }

    fn end(&mut self, cancel: bool) {
        let stage = std::mem::replace(&mut self.stage, Stage::Over);
        let kind = match self.kind.take() {
            Some(kind) => kind,
            None => return,
        };
        match stage {
            Stage::Posted(ticket) => ticket.abandon(Box::new(kind), cancel),
            Stage::Refused(driver, error) => drop(kind.refused(error, &driver)),
            Stage::Over => {}
        }
    }
}

impl<K: Kind> Drop for Call<K> {
    fn drop(&mut self) {
        self.end(K::CANCELS);
    }
}

impl<K: Kind> fmt::Debug for Call<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.stage {
            Stage::Posted(_) => "Call(posted)",
            Stage::Refused(..) => "Call(refused)",
            Stage::Over => "Call(over)",
        })
    }
}

impl<K: Kind> Future for Call<K> {
    type Output = K::Output;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<K::Output> {
        let this = &mut *self;
        let kind = &mut this.kind;
        let mut own = || kind.take().expect("a call was polled after its end");
        let output = match &this.stage {
            Stage::Posted(ticket) => {
                let read = |ret, room: &Room| own().finish(ret, room, &ticket.driver);
                match ticket.take(context, read) {
                    Poll::Ready(output) => output,
                    Poll::Pending => return Poll::Pending,
                }
            }
            Stage::Refused(driver, error) => own().refused(*error, driver),
            Stage::Over => panic!("a call was polled after its end"),
        };
        this.stage = Stage::Over;
        Poll::Ready(output)
    }
}

/// Convert a result to Rust's form.
pub fn outcome(ret: i64) -> io::Result<u64> {
    match u64::try_from(ret) {
        Ok(value) => Ok(value),
        Err(_) => Err(io::Error::from_raw_os_error(-ret as i32)),
    }
}

/// A call whose only output is success or an error.
pub struct Done {
    pub(crate) _file: Rc<Fd>,
}

impl Kind for Done {
    type Output = io::Result<()>;

    fn finish(self, ret: i64, _: &Room, _: &Rc<Driver>) -> io::Result<()> {
        outcome(ret).map(drop)
    }
}

/// Any system call.
pub struct Syscall<T: 'static>(pub(crate) T);

impl<T> Kind for Syscall<T> {
    type Output = (io::Result<u64>, T);

    fn finish(self, ret: i64, _: &Room, _: &Rc<Driver>) -> Self::Output {
        (outcome(ret), self.0)
    }
}
