// SPDX-License-Identifier: MIT
//! Linux system calls as futures, by libflexsc. Calls are posted into memory with plain
//! stores, and made in batches or on another core, without a mode switch for each.
//!
//! ```no_run
//! fn main() -> std::io::Result<()> {
//!     let flexsc = flexsc::Loop::new()?;
//!     flexsc.block_on(async {
//!         let file = flexsc.open("/etc/hostname").await?;
//!         let (n, text) = file.pread(Vec::with_capacity(4096), 0).await;
//!         println!("{} bytes: {:?}", n?, String::from_utf8_lossy(&text));
//!         file.close().await
//!     })
//! }
//! ```
//!
//! A [`Loop`] belongs to the thread that makes it. It runs futures ([`Loop::block_on`],
//! [`Handle::spawn`]); any thread may wake them.
//!
//! # Calls
//!
//! A function that makes a call **posts it at once** and returns its future, a
//! [`Call`]. So two calls that are made one after the other run concurrently, in any
//! order, whichever is awaited first. The loop starts posted calls when it checks for
//! completions, all of them in one batch.
//!
//! A call owns its buffer until it completes, and returns it with the result. Dropping
//! a [`Call`] cancels it. Its buffer and its [`File`] live on until the kernel has
//! released them. A call that was dropped may still have had its effect.
//!
//! Dropping the [`Loop`] drops all tasks, cancels all calls and waits for their ends. A
//! [`Call`] that outlives its loop still returns its result. Calls that are made after
//! that fail with `ESHUTDOWN`.
//!
//! # Panics
//!
//! A task's panic is the result of its [`JoinHandle`], and a panic of a closure on a
//! syscall thread is the result of its [`Call`]. Other panics propagate to the caller:
//! those of the future that [`Loop::block_on`] runs, of a waker, of a buffer's `drop`,
//! and of a future that is dropped with the loop. No panic unwinds out of Rust.
//!
//! # fork
//!
//! A forked child has no loop. Calls through its parent's loop fail with `ESTALE`, and
//! `block_on` panics. As always, the child of a multithreaded program should only exec.
#![deny(missing_docs)]
#![deny(unsafe_op_in_unsafe_fn)]

mod buf;
mod call;
mod driver;
mod file;
mod job;
mod net;
mod run;
mod stat;
mod task;
mod time;
mod wake;

pub use buf::{IoBuf, IoBufMut};
pub use call::Call;
pub use file::{forget, File, OpenOptions};
pub use flexsc_sys as sys;
pub use run::{identity_changed, Builder, Handle, Loop};
pub use stat::{Statx, Timestamp};
pub use task::{JoinError, JoinHandle};
pub use time::Timeout;

/// The types of [`Call`]s: the parameters in the type's name.
pub mod kind {
    pub use crate::call::{Done, Syscall};
    pub use crate::file::{Accept, Close, Open, Read, Write};
    pub use crate::job::Work;
    pub use crate::stat::Stat;
    pub use crate::time::Sleep;
}
