// SPDX-License-Identifier: MIT
//! The declarations of libflexsc's headers, `<flexsc/*.h>`. The manual page of a
//! function's name has what it does and what it asks of its caller.
//!
//! `build.rs` makes functions, constants and [`flexsc_stats`] of the headers.
//! What the headers define inline isn't here: the functions named after system
//! calls (`flexsc_loop_call()` with a number of [`nr`] is what these do), those of
//! `<flexsc/default.h>` (each is its namesake with `flexsc_loop_default()`), and
//! `<flexsc/netdb.h>`.
#![allow(non_camel_case_types)]
#![deny(missing_docs)]

use std::marker::{PhantomData, PhantomPinned};
use std::os::raw::{c_char, c_int, c_uint, c_void};

/// The numbers of Linux's system calls on the machine that is compiled for, as
/// `FLEXSC_NR_*` of `<flexsc/syscalls.h>`, which `build.rs` reads.
pub mod nr {
    use std::os::raw::c_uint;

    macro_rules! numbers {
        ($($name:ident $number:literal;)*) => {
            $(
                #[allow(missing_docs)]
                pub const $name: c_uint = $number;
            )*

            /// All of them, for what looks a number up by its name.
            pub const ALL: &[(&str, c_uint)] = &[$((stringify!($name), $number)),*];
        };
    }

    include!(concat!(env!("OUT_DIR"), "/numbers.rs"));
}

/// A loop. Opaque, of one thread.
#[repr(C)]
pub struct flexsc_loop {
    _data: [u8; 0],
    _marker: PhantomData<(*mut u8, PhantomPinned)>,
}

/// Memory that a loop receives into. Opaque, of one loop.
#[repr(C)]
pub struct flexsc_buffers {
    _data: [u8; 0],
    _marker: PhantomData<(*mut u8, PhantomPinned)>,
}

/// What a call is posted with.
#[repr(C)]
#[derive(Debug)]
pub struct flexsc_cb {
    /// Called at the end; `None`: only `ret` is set.
    pub callback: Option<unsafe extern "C" fn(cb: *mut flexsc_cb)>,
    /// The caller's own.
    pub arg: *mut c_void,
    /// The result, or a negative error number.
    pub ret: i64,
    /// The library's.
    pub handle: u64,
    /// Of a completion: [`FLEXSC_CB_MORE`] and [`FLEXSC_CB_BUFFER`].
    pub flags: u32,
    /// The library's.
    pub buffer: u32,
    /// The library's.
    pub reserved: u64,
}

/// How a loop is made: zero means the default everywhere but in `size`.
#[repr(C)]
#[derive(Debug)]
pub struct flexsc_options {
    /// The size of this structure.
    pub size: usize,
    /// The engine's name, or null.
    pub engine: *const c_char,
    /// Where syscall threads run, as `"2,4-6"`, or null.
    pub kernel_cores: *const c_char,
    /// Calls executing at once.
    pub max_entries: u32,
    /// Syscall threads.
    pub max_threads: u32,
    /// Microseconds of looking for work before sleeping.
    pub poll_us: u32,
    /// None is defined: 0.
    pub flags: u32,
}

/// What a loop publishes for other processes.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct flexsc_stats_page {
    /// [`FLEXSC_STATS_MAGIC`].
    pub magic: u64,
    /// The size of the whole structure.
    pub size: u32,
    /// The owner thread.
    pub tid: i32,
    /// The engine's name.
    pub engine: [c_char; 16],
    /// The counters.
    pub stats: flexsc_stats,
}

/// Argument `n` is the result of the call before it.
#[allow(non_snake_case)]
pub const fn FLEXSC_CHAIN_ARG(n: c_uint) -> c_uint {
    n + 1
}

/// The name of the memfd that a loop's counters are in.
pub const FLEXSC_STATS_NAME: &str = "flexsc-stats";
/// The version that this was written for, as `FLEXSC_VERSION` of the headers.
pub const FLEXSC_VERSION: c_uint = 0x100;

include!(concat!(env!("OUT_DIR"), "/headers.rs"));
