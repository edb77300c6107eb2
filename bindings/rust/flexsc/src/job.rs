// SPDX-License-Identifier: MIT
//! Closures that run on syscall threads.

use crate::call::{Call, Kind};
use crate::driver::{Driver, Room};
use crate::task::JoinError;
use flexsc_sys as sys;
use std::os::raw::c_void;
use std::panic::{self, AssertUnwindSafe};
use std::ptr::NonNull;
use std::rc::Rc;
use std::thread;

/// Made by the owner, used by the syscall thread while it runs, and by the owner after
/// that.
struct Job<R> {
    closure: Option<Box<dyn FnOnce() -> R + Send>>,
    result: Option<thread::Result<R>>,
}

/// A closure that runs on a syscall thread.
pub struct Work<R: 'static>(NonNull<Job<R>>);

impl<R> Drop for Work<R> {
    fn drop(&mut self) {
        // SAFETY: It came from a box, and the call has ended, so no other thread uses
        // it.
        drop(unsafe { Box::from_raw(self.0.as_ptr()) });
    }
}

impl<R: 'static> Kind for Work<R> {
    type Output = Result<R, JoinError>;

    fn finish(self, ret: i64, _: &Room, _: &Rc<Driver>) -> Self::Output {
        // SAFETY: The call has ended, so no other thread uses the job.
        let result = unsafe { (*self.0.as_ptr()).result.take() };
        match result {
            Some(Ok(value)) => Ok(value),
            Some(Err(payload)) => Err(JoinError::Panicked(payload)),
            None => Err(JoinError::ended(-ret as i32)),
        }
    }
}

/// Runs on a syscall thread. Catches panics.
unsafe extern "C" fn run<R>(job: *mut c_void) -> i64 {
    let job = job.cast::<Job<R>>();
    // SAFETY: Only this thread uses the job until this function returns.
    let job = unsafe { &mut *job };
    if let Some(closure) = job.closure.take() {
        job.result = Some(panic::catch_unwind(AssertUnwindSafe(closure)));
    }
    0
}

pub fn work<F, R>(driver: &Rc<Driver>, closure: F) -> Call<Work<R>>
where
    F: FnOnce() -> R + Send + 'static,
    R: Send + 'static,
{
    let job = Box::new(Job {
        closure: Some(Box::new(closure) as Box<dyn FnOnce() -> R + Send>),
        result: None,
    });
    let job = NonNull::from(Box::leak(job));
    // SAFETY: The job lives at one address as long as the kind that points to it. The
    // values that move to the thread and back are Send.
    unsafe {
        Call::post(driver, Work(job), |raw, cb, _| {
            sys::flexsc_loop_work(raw, cb, Some(run::<R>), job.as_ptr().cast())
        })
    }
}
