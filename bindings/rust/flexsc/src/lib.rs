// SPDX-License-Identifier: MIT
//! Linux system calls as futures, by libflexsc: posted into memory with plain
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
//! A [`Loop`] belongs to the thread that makes it. It runs futures
//! ([`Loop::block_on`], [`Handle::spawn`]); any thread may wake them.
//!
//! # Calls
//!
//! A function that makes a call **posts it at once** and returns its future, a
//! [`Call`]. So two calls that are made one after the other run together, in any
//! order, whichever is awaited first. What was posted starts when the loop looks for
//! completions, all of it in one batch.
//!
//! A call owns its buffer until it completes, and gives it back with the result.
//! Dropping a [`Call`] cancels it; its buffer, and the [`File`] it is of, live on
//! until the kernel has let go of them. A call that was dropped may have had its
//! effect.
//!
//! Dropping the [`Loop`] drops all tasks, cancels all calls and waits for their ends.
//! A [`Call`] that outlives its loop gives its result, and what is called then fails
//! with `ESHUTDOWN`.
//!
//! # Panics
//!
//! The panic of a task is its [`JoinHandle`]'s result, and that of a closure on a
//! syscall thread its [`Call`]'s. A panic of the future that [`Loop::block_on`] runs
//! goes to the caller; so does one of a waker or of a buffer's `drop`, and one of a
//! future that is dropped with the loop. None leaves Rust.
//!
//! # fork
//!
//! A child has no loop. What it makes of its parent's fails with `ESTALE`, and
//! `block_on` panics there. Let children of programs with threads only exec, as ever.
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
pub use run::{Builder, Handle, Loop};
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
