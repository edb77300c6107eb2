// SPDX-License-Identifier: MIT
//! Making, running and dropping a loop, by its owner.

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

/// Options of a new loop. Options that aren't set have the library's defaults.
#[derive(Clone, Debug, Default)]
pub struct Builder {
    engine: Option<String>,
    kernel_cores: Option<String>,
    max_entries: u32,
    max_threads: u32,
    poll: Duration,
    poll_adaptive: bool,
    backlog: u32,
}

impl Builder {
    /// All defaults.
    pub fn new() -> Builder {
        Builder::default()
    }

    /// The engine: `"uring"`, `"threads"`, `"kmod"` or `"sync"`. The default is the
    /// environment variable `FLEXSC_ENGINE`, or else the first engine that works.
    pub fn engine(mut self, name: &str) -> Builder {
        self.engine = Some(name.to_string());
        self
    }

    /// The cores on which the loop's calls are executed, such as `"2,4-6"`, the
    /// preferred ones first. With the engine uring, a kernel thread polls there.
    pub fn kernel_cores(mut self, cores: &str) -> Builder {
        self.kernel_cores = Some(cores.to_string());
        self
    }

    /// Maximum number of executing calls.
    pub fn max_entries(mut self, n: u32) -> Builder {
        self.max_entries = n;
        self
    }

    /// Maximum number of syscall threads.
    pub fn max_threads(mut self, n: u32) -> Builder {
        self.max_threads = n;
        self
    }

    /// How long the owner and the threads that execute calls poll for work before they
    /// sleep.
    pub fn poll(mut self, time: Duration) -> Builder {
        self.poll = time;
        self
    }

    /// Shorten the time of [`poll`](Builder::poll) while work arrives later than that.
    pub fn poll_adaptive(mut self, adaptive: bool) -> Builder {
        self.poll_adaptive = adaptive;
        self
    }

    /// Number of waiting calls that justify the use of one more core.
    pub fn backlog(mut self, n: u32) -> Builder {
        self.backlog = n;
        self
    }

    /// Make the loop, which belongs to the calling thread.
    ///
    /// # Errors
    ///
    /// `InvalidInput`: an unknown engine, or an option out of range; `EOPNOTSUPP`: the
    /// engine doesn't work here, and [`probe`](Loop::probe) explains why; or a resource
    /// of the system is exhausted.
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
            flags: if self.poll_adaptive {
                sys::FLEXSC_POLL_ADAPTIVE
            } else {
                0
            },
            backlog: self.backlog,
            reserved: 0,
        };
        Ok(Loop {
            handle: Handle {
                driver: Driver::new(&options)?,
            },
            runs: Cell::new(0),
        })
    }
}

/// Call this after each change of the process's users, groups or capabilities, if a loop
/// has [`kernel_cores`](Builder::kernel_cores). Calls that start later have the present
/// identity of their loop's owner.
pub fn identity_changed() {
    // SAFETY: The function has no preconditions.
    unsafe { sys::flexsc_identity_changed() };
}

/// A loop of calls and tasks, which belongs to the thread that made it.
///
/// ```compile_fail
/// let flexsc = flexsc::Loop::new().unwrap();
/// std::thread::spawn(move || drop(flexsc));
/// ```
///
/// Dropping it drops all tasks, cancels all calls and waits for their ends. A loop that
/// is forgotten ([`std::mem::forget`]) leaks everything.
pub struct Loop {
    handle: Handle,
    runs: Cell<u64>,
}

/// Posts calls and spawns tasks; made for use in tasks. It may outlive its loop; its
/// functions then fail with `ESHUTDOWN`.
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

/// Marks the loop as running until this is dropped.
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
        // Submit the last posts, such as closes, now: they must not wait for the next
        // run.
        self.0.submit();
    }
}

impl Loop {
    /// Make a loop with default options: see [`Builder::build`].
    pub fn new() -> io::Result<Loop> {
        Builder::new().build()
    }

    /// Does this engine work here? The error's text explains why it doesn't.
    pub fn probe(engine: &str) -> Result<(), String> {
        let mut why = [0 as c_char; 256];
        let name = CString::new(engine).map_err(|error| error.to_string())?;
        // SAFETY: The name is valid, and the room has the size that is passed.
        let err = unsafe { sys::flexsc_engine_probe(name.as_ptr(), why.as_mut_ptr(), why.len()) };
        if err == 0 {
            return Ok(());
        }
        // SAFETY: The array ends with a zero: it was zeroed, and the library terminates
        // its text.
        let why = unsafe { CStr::from_ptr(why.as_ptr()) };
        match why.to_bytes() {
            [] => Err(io::Error::from_raw_os_error(-err).to_string()),
            line => Err(String::from_utf8_lossy(line).into_owned()),
        }
    }

    /// Run the loop and all of its tasks until this future has ended.
    ///
    /// # Panics
    ///
    /// Panics if it is called inside a task of this loop, if the engine fails, in a
    /// forked child, and if the future panics.
    pub fn block_on<F: Future>(&self, future: F) -> F::Output {
        let driver = &self.driver;
        let _running = Running::new(driver);
        let mut future = future;
        // SAFETY: The future is shadowed, so it is never moved.
        let mut future = unsafe { Pin::new_unchecked(&mut future) };
        self.runs.set(self.runs.get() + 1);
        let main = Key {
            index: usize::MAX,
            generation: self.runs.get(),
        };
        let (waker, wake) = TaskWake::new(main, &driver.shared);
        loop {
            // Tasks that are woken meanwhile are polled after the next check for
            // completed calls.
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
    /// Spawn a task: run a future concurrently while the loop runs.
    pub fn spawn<F>(&self, future: F) -> JoinHandle<F::Output>
    where
        F: Future + 'static,
        F::Output: 'static,
    {
        task::spawn(&self.driver, future)
    }

    /// Run a closure on a syscall thread, because it would stall the loop: it computes
    /// for long, or blocks. With the engine `"sync"` the owner runs it.
    ///
    /// A closure that is dropped before it started doesn't run. A closure that has
    /// started runs to its end, and the end of the loop waits for that.
    pub fn work<F, R>(&self, closure: F) -> Call<Work<R>>
    where
        F: FnOnce() -> R + Send + 'static,
        R: Send + 'static,
    {
        job::work(&self.driver, closure)
    }

    /// Sleep. The sleep never ends early. It ends at most 66 microseconds late, plus the
    /// time for which the loop is busy.
    pub fn sleep(&self, time: Duration) -> Call<Sleep> {
        time::sleep(&self.driver, time)
    }

    /// Limit a future's time: when the time is over, the future is dropped. For a single
    /// call [`Call::deadline`] is cheaper.
    pub fn timeout<F: Future>(&self, time: Duration, future: F) -> Timeout<F> {
        Timeout::new(self.sleep(time), future)
    }

    /// Make any system call that libflexsc supports, by its number: [`sys::nr`]. `keep`
    /// owns the memory that the arguments point to, and is returned with the result.
    ///
    /// # Safety
    ///
    /// The call is harmless with these arguments, whenever it is made. The memory that
    /// they point to doesn't move while `keep` lives, even if `keep` is moved, as for
    /// [`IoBuf`](crate::IoBuf). Nothing else uses that memory meanwhile.
    pub unsafe fn syscall<T: 'static>(
        &self,
        number: c_uint,
        arguments: [u64; 6],
        keep: T,
    ) -> Call<Syscall<T>> {
        let [a, b, c, d, e, f] = arguments;
        // SAFETY: The caller upholds the contract.
        unsafe {
            Call::post(&self.driver, Syscall(keep), |raw, cb, _| {
                sys::flexsc_loop_call(raw, cb, number, a, b, c, d, e, f)
            })
        }
    }

    /// The engine's name; empty after the loop was dropped.
    pub fn engine(&self) -> String {
        // SAFETY: The pointer is a loop or null.
        let name = unsafe { sys::flexsc_loop_engine(self.driver.raw()) };
        text(name).unwrap_or_default()
    }

    /// A line that explains why a better engine isn't used. None: the best one is used.
    pub fn why(&self) -> Option<String> {
        // SAFETY: The pointer is a loop or null.
        text(unsafe { sys::flexsc_loop_why(self.driver.raw()) })
    }

    /// The loop's counters; zeros after it was dropped.
    pub fn stats(&self) -> sys::flexsc_stats {
        let mut stats = sys::flexsc_stats::default();
        let size = size_of::<sys::flexsc_stats>();
        // SAFETY: The pointer is a loop or null, and the structure has its full size.
        unsafe { sys::flexsc_loop_stats(self.driver.raw(), &mut stats, size) };
        stats
    }
}

fn text(line: *const c_char) -> Option<String> {
    if line.is_null() {
        return None;
    }
    // SAFETY: The library owns the string, which lives as long as the loop.
    let line = unsafe { CStr::from_ptr(line) };
    Some(line.to_string_lossy().into_owned())
}
