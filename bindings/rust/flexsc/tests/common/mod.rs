// SPDX-License-Identifier: MIT
//! Helpers of all tests: loops of every engine, pipes, and a folder.
#![allow(dead_code)]

use flexsc::{Builder, File, Loop};
use std::fs;
use std::future::Future;
use std::io;
use std::os::raw::c_int;
use std::os::unix::io::{FromRawFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::process;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::Once;
use std::task::{Context, Poll};
use std::thread;
use std::time::Duration;

extern "C" {
    fn pipe2(fds: *mut c_int, flags: c_int) -> c_int;
}

/// Engines whose loop continues while a call waits.
pub const ASYNCHRONOUS: &[&str] = &["uring", "threads"];
pub const ALL: &[&str] = &["uring", "threads", "sync"];

const LIMIT: Duration = Duration::from_secs(300);

/// Ends the process when its tests take too long, because one of them waits for ever.
fn watch() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        thread::spawn(|| {
            thread::sleep(LIMIT);
            eprintln!("no end within {LIMIT:?}");
            process::abort();
        });
    });
}

/// Run a test with a loop of each engine that works here.
pub fn with(engines: &[&str], mut test: impl FnMut(Loop)) {
    watch();
    let mut ran = 0;
    for engine in engines {
        if let Err(why) = Loop::probe(engine) {
            eprintln!("skipped with {engine}: {why}");
            continue;
        }
        let flexsc = Builder::new().engine(engine).build().unwrap();
        assert_eq!(flexsc.engine(), *engine);
        test(flexsc);
        ran += 1;
    }
    assert!(ran > 0, "no engine works here");
}

/// Both ends have close-on-exec set.
pub fn pipe() -> (OwnedFd, OwnedFd) {
    let mut fds = [0; 2];
    // SAFETY: The array has room for two descriptors, which belong to us after that.
    unsafe {
        assert_eq!(pipe2(fds.as_mut_ptr(), 0o2000000), 0);
        (OwnedFd::from_raw_fd(fds[0]), OwnedFd::from_raw_fd(fds[1]))
    }
}

pub fn adopted_pipe(flexsc: &Loop) -> (File, File) {
    let (reader, writer) = pipe();
    (flexsc.adopt(reader), flexsc.adopt(writer))
}

/// A folder that is removed when this is dropped.
pub struct Folder(PathBuf);

impl Folder {
    pub fn new() -> Folder {
        static LAST: AtomicUsize = AtomicUsize::new(0);
        loop {
            let number = LAST.fetch_add(1, Ordering::Relaxed);
            let name = format!("flexsc-rust-{}-{number}", process::id());
            let path = std::env::temp_dir().join(name);
            match fs::create_dir(&path) {
                Ok(()) => return Folder(path),
                // A process that was killed has left it, and had the same number.
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => panic!("{}: {error}", path.display()),
            }
        }
    }

    pub fn join(&self, name: impl AsRef<Path>) -> PathBuf {
        self.0.join(name)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        fs::remove_dir_all(&self.0).unwrap();
    }
}

/// Number of this process's descriptors of this file.
pub fn descriptors_of(path: &Path) -> usize {
    let names = fs::read_dir("/proc/self/fd").unwrap();
    let targets = names.filter_map(|name| fs::read_link(name.unwrap().path()).ok());
    targets.filter(|target| target == path).count()
}

/// Lets other tasks and completions run first.
pub struct Yield(pub usize);

impl Future for Yield {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        if self.0 == 0 {
            return Poll::Ready(());
        }
        self.0 -= 1;
        context.waker().wake_by_ref();
        Poll::Pending
    }
}

/// Replaces std::future::poll_fn(), which the oldest supported compiler lacks.
pub struct PollFn<F>(pub F);

impl<T, F: FnMut(&mut Context<'_>) -> Poll<T> + Unpin> Future for PollFn<F> {
    type Output = T;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<T> {
        (self.0)(context)
    }
}

pub fn error_of<T>(result: io::Result<T>) -> i32 {
    result
        .err()
        .and_then(|error| error.raw_os_error())
        .unwrap_or(0)
}
