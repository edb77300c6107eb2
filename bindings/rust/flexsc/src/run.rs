// SPDX-License-Identifier: MIT
//! A loop, as its owner makes, runs and drops it.

use crate::call::{Call, Syscall};
use crate::driver::Driver;
use crate::job::{self, Work};
use crate::task::{self, JoinHandle};
use crate::time::{self, Sleep, Timeout};
use crate::wake::{Key, TaskWake};
use flexsc_sys as sys;
use std::cell::Cell;
use std::ffi::{CStr, CString};
use std::fmt;
use std::future::Future;
use std::io;
use std::mem::size_of;
use std::ops::Deref;
use std::os::raw::{c_char, c_uint};
use std::pin::Pin;
use std::ptr;
use std::rc::Rc;
use std::task::{Context, Poll};
use std::time::Duration;

/// How a loop is made. What isn't set is the library's default.
#[derive(Clone, Debug, Default)]
pub struct Builder {
    engine: Option<String>,
    kernel_cores: Option<String>,
    max_entries: u32,
    max_threads: u32,
    poll: Duration,
}

impl Builder {
    /// All defaults.
    pub fn new() -> Builder {
        Builder::default()
    }

    /// `"uring"`, `"threads"`, `"kmod"` or `"sync"`, instead of what the environment
    /// variable `FLEXSC_ENGINE` names, or the first that works.
    pub fn engine(mut self, name: &str) -> Builder {
        self.engine = Some(name.to_string());
        self
    }

    /// Where the loop's calls are executed, as `"2,4-6"`.
    pub fn kernel_cores(mut self, cores: &str) -> Builder {
        self.kernel_cores = Some(cores.to_string());
        self
    }

    /// Calls executing at once.
    pub fn max_entries(mut self, n: u32) -> Builder {
        self.max_entries = n;
        self
    }

    /// Syscall threads.
    pub fn max_threads(mut self, n: u32) -> Builder {
        self.max_threads = n;
        self
    }

    /// How long the owner and whoever executes calls look for work before they sleep.
    /// With [`kernel_cores`](Builder::kernel_cores) and the engine uring, that is a
    /// thread of the kernel.
    pub fn poll(mut self, time: Duration) -> Builder {
        self.poll = time;
        self
    }

    /// Make the loop, which is the calling thread's.
    ///
    /// # Errors
    ///
    /// `InvalidInput`: an unknown engine, or an option out of range; `EOPNOTSUPP`: the
    /// engine doesn't work here, and [`probe`](Loop::probe) says why; or the system is
    /// out of something.
    pub fn build(&self) -> io::Result<Loop> {
        let engine = self.engine.as_deref().map(CString::new).transpose()?;
        let cores = self.kernel_cores.as_deref().map(CString::new).transpose()?;
        let poll_us = u32::try_from(self.poll.as_micros());
        let options = sys::flexsc_options {
            size: size_of::<sys::flexsc_options>(),
            engine: engine.as_ref().map_or(ptr::null(), |name| name.as_ptr()),
            kernel_cores: cores.as_ref().map_or(ptr::null(), |list| list.as_ptr()),
            max_entries: self.max_entries,
            max_threads: self.max_threads,
            poll_us: poll_us.map_err(|_| io::ErrorKind::InvalidInput)?,
            flags: 0,
        };
        Ok(Loop {
            handle: Handle {
                driver: Driver::new(&options)?,
            },
            runs: Cell::new(0),
        })
    }
}

/// A loop of calls and tasks, of the thread that made it.
///
/// ```compile_fail
/// let flexsc = flexsc::Loop::new().unwrap();
/// std::thread::spawn(move || drop(flexsc));
/// ```
///
/// Dropping it drops all tasks, cancels all calls and waits for their ends. One that is
/// forgotten ([`std::mem::forget`]) leaves all in place for good.
pub struct Loop {
    handle: Handle,
    runs: Cell<u64>,
}

/// What posts calls and spawns tasks, for tasks to have. It may outlive its loop, and
/// what it does then fails with `ESHUTDOWN`.
#[derive(Clone)]
pub struct Handle {
    pub(crate) driver: Rc<Driver>,
}

impl Deref for Loop {
    type Target = Handle;

    fn deref(&self) -> &Handle {
        &self.handle
    }
}

impl Drop for Loop {
    fn drop(&mut self) {
        self.handle.driver.close();
    }
}

impl fmt::Debug for Loop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Loop")
            .field("engine", &self.engine())
            .finish()
    }
}

/// The loop runs, until this is dropped.
struct Running<'a>(&'a Driver);

impl<'a> Running<'a> {
    fn new(driver: &'a Driver) -> Running<'a> {
        assert!(
            !driver.running.replace(true),
            "block_on() inside a task of the same loop"
        );
        Running(driver)
    }
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        self.0.running.set(false);
        // What was posted last, closes for instance, doesn't wait for the next run.
        self.0.submit();
    }
}

impl Loop {
    /// A loop with default options: see [`Builder::build`].
    pub fn new() -> io::Result<Loop> {
        Builder::new().build()
    }

    /// Does this engine work here? Why it doesn't is the error's text.
    pub fn probe(engine: &str) -> Result<(), String> {
        let mut why = [0 as c_char; 256];
        let name = CString::new(engine).map_err(|error| error.to_string())?;
        // SAFETY: A name, and as much room as is said.
        let err = unsafe { sys::flexsc_engine_probe(name.as_ptr(), why.as_mut_ptr(), why.len()) };
        if err == 0 {
            return Ok(());
        }
        // SAFETY: The array ends with a zero: it began with nothing else, and the
        // library ends its lines.
        let why = unsafe { CStr::from_ptr(why.as_ptr()) };
        match why.to_bytes() {
            [] => Err(io::Error::from_raw_os_error(-err).to_string()),
            line => Err(String::from_utf8_lossy(line).into_owned()),
        }
    }

    /// Run the loop, with all its tasks, until this future has ended.
    ///
    /// # Panics
    ///
    /// Inside a task of this loop; if the engine fails; in a forked child; and with
    /// what the future panics with.
    pub fn block_on<F: Future>(&self, future: F) -> F::Output {
        let driver = &self.driver;
        let _running = Running::new(driver);
        let mut future = future;
        // SAFETY: The future is shadowed, and so never moved.
        let mut future = unsafe { Pin::new_unchecked(&mut future) };
        self.runs.set(self.runs.get() + 1);
        let main = Key {
            index: usize::MAX,
            generation: self.runs.get(),
        };
        let (waker, wake) = TaskWake::new(main, &driver.shared);
        loop {
            // Those that wake up meanwhile have their turn after a look at the calls.
            for _ in 0..driver.runnable() {
                let key = match driver.next() {
                    Some(key) => key,
                    None => break,
                };
                if key != main {
                    driver.tasks.poll(key);
                    continue;
                }
                wake.unqueue();
                let mut context = Context::from_waker(&waker);
                if let Poll::Ready(output) = future.as_mut().poll(&mut context) {
                    return output;
                }
            }
            if driver.runnable() == 0 {
                driver.wait();
            }
            driver.collect();
        }
    }
}

impl Handle {
    /// Run a future beside others, while the loop runs.
    pub fn spawn<F>(&self, future: F) -> JoinHandle<F::Output>
    where
        F: Future + 'static,
        F::Output: 'static,
    {
        task::spawn(&self.driver, future)
    }

    /// Run a closure on a syscall thread: what would stop the loop, because it computes
    /// or blocks. With the engine `"sync"` it is run by the owner.
    ///
    /// One that was dropped before it started doesn't run; one that runs goes on to its
    /// end, and the loop's end waits for that.
    pub fn work<F, R>(&self, closure: F) -> Call<Work<R>>
    where
        F: FnOnce() -> R + Send + 'static,
        R: Send + 'static,
    {
        job::work(&self.driver, closure)
    }

    /// End after a time: never early, late by 66 microseconds at most besides what the
    /// loop is busy with.
    pub fn sleep(&self, time: Duration) -> Call<Sleep> {
        time::sleep(&self.driver, time)
    }

    /// Give a future a time, after which it is dropped. For a single call
    /// [`Call::deadline`] costs less.
    pub fn timeout<F: Future>(&self, time: Duration, future: F) -> Timeout<F> {
        Timeout::new(self.sleep(time), future)
    }

    /// Make any system call that libflexsc takes, by its number: [`sys::nr`]. `keep` is
    /// what the arguments point to, which comes back with the result.
    ///
    /// # Safety
    ///
    /// The call does no harm with these arguments, whenever it is made. What they point
    /// to stays where it is while `keep` lives, also if that is moved, as for
    /// [`IoBuf`](crate::IoBuf); and nothing else uses it meanwhile.
    pub unsafe fn syscall<T: 'static>(
        &self,
        number: c_uint,
        arguments: [u64; 6],
        keep: T,
    ) -> Call<Syscall<T>> {
        let [a, b, c, d, e, f] = arguments;
        // SAFETY: The caller's promise.
        unsafe {
            Call::post(&self.driver, Syscall(keep), |raw, cb, _| {
                sys::flexsc_loop_call(raw, cb, number, a, b, c, d, e, f)
            })
        }
    }

    /// The engine's name, or an empty one when the loop is gone.
    pub fn engine(&self) -> String {
        // SAFETY: A loop or null.
        let name = unsafe { sys::flexsc_loop_engine(self.driver.raw()) };
        text(name).unwrap_or_default()
    }

    /// Why not a better engine: a line, if there is something to say.
    pub fn why(&self) -> Option<String> {
        // SAFETY: A loop or null.
        text(unsafe { sys::flexsc_loop_why(self.driver.raw()) })
    }

    /// What the loop has done; zeros when it is gone.
    pub fn stats(&self) -> sys::flexsc_stats {
        let mut stats = sys::flexsc_stats::default();
        let size = size_of::<sys::flexsc_stats>();
        // SAFETY: A loop or null, and a whole structure.
        unsafe { sys::flexsc_loop_stats(self.driver.raw(), &mut stats, size) };
        stats
    }
}

fn text(line: *const c_char) -> Option<String> {
    if line.is_null() {
        return None;
    }
    // SAFETY: A line of the library's, which lives as long as the loop.
    let line = unsafe { CStr::from_ptr(line) };
    Some(line.to_string_lossy().into_owned())
}
