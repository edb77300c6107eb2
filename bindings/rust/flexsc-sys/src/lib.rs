// SPDX-License-Identifier: MIT
//! The declarations of libflexsc's headers, `<flexsc/*.h>`. Each function's manual page
//! describes it and the obligations of its caller.
//!
//! `build.rs` generates functions, constants and [`flexsc_stats`] from the headers.
//! Inline functions of the headers are not available here: the functions named after
//! system calls (use `flexsc_loop_call()` with a number of [`nr`]), those of
//! `<flexsc/default.h>` (use the function of the same name with
//! `flexsc_loop_default()`), and `<flexsc/netdb.h>`.
#![allow(non_camel_case_types)]
#![deny(missing_docs)]

use std::marker::{PhantomData, PhantomPinned};
use std::os::raw::{c_char, c_int, c_uint, c_void};

/// Linux's system call numbers on the target machine, as `FLEXSC_NR_*` of
/// `<flexsc/syscalls.h>`, which `build.rs` reads.
pub mod nr {
    use std::os::raw::c_uint;

    macro_rules! numbers {
        ($($name:ident $number:literal;)*) => {
            $(
                #[allow(missing_docs)]
                pub const $name: c_uint = $number;
            )*

            /// All numbers with their names, for looking up a number by name.
            pub const ALL: &[(&str, c_uint)] = &[$((stringify!($name), $number)),*];
        };
    }

    include!(concat!(env!("OUT_DIR"), "/numbers.rs"));
}

/// A loop. Opaque; belongs to one thread.
#[repr(C)]
pub struct flexsc_loop {
    _data: [u8; 0],
    _marker: PhantomData<(*mut u8, PhantomPinned)>,
}

/// Memory that a loop receives into. Opaque; belongs to one loop.
#[repr(C)]
pub struct flexsc_buffers {
    _data: [u8; 0],
    _marker: PhantomData<(*mut u8, PhantomPinned)>,
}

/// The control block of a posted call.
#[repr(C)]
#[derive(Debug)]
pub struct flexsc_cb {
    /// Called when the call has ended; `None`: only `ret` is set.
    pub callback: Option<unsafe extern "C" fn(cb: *mut flexsc_cb)>,
    /// For the caller's use.
    pub arg: *mut c_void,
    /// The result, or a negative error number.
    pub ret: i64,
    /// Used by the library.
    pub handle: u64,
    /// Flags of a completion: [`FLEXSC_CB_MORE`] and [`FLEXSC_CB_BUFFER`].
    pub flags: u32,
    /// Used by the library.
    pub buffer: u32,
    /// Used by the library.
    pub reserved: u64,
}

/// Options of a new loop. Zero means the default for every field but `size`.
#[repr(C)]
#[derive(Debug)]
pub struct flexsc_options {
    /// The size of this structure.
    pub size: usize,
    /// The engine's name, or null.
    pub engine: *const c_char,
    /// Cores of syscall threads, such as `"2,4-6"`, or null.
    pub kernel_cores: *const c_char,
    /// Maximum number of executing calls.
    pub max_entries: u32,
    /// Maximum number of syscall threads.
    pub max_threads: u32,
    /// How long to poll for work before sleeping, in microseconds.
    pub poll_us: u32,
    /// [`FLEXSC_POLL_ADAPTIVE`] or 0.
    pub flags: u32,
    /// Number of waiting calls that justify the use of one more core.
    pub backlog: u32,
    /// Must be 0.
    pub reserved: u32,
}

/// The counters that a loop publishes for other processes.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct flexsc_stats_page {
    /// [`FLEXSC_STATS_MAGIC`].
    pub magic: u64,
    /// The size of the whole structure.
    pub size: u32,
    /// Thread id of the owner.
    pub tid: i32,
    /// The engine's name.
    pub engine: [c_char; 16],
    /// The counters.
    pub stats: flexsc_stats,
}

/// Stores the result of the previous call in argument `n` of this call.
#[allow(non_snake_case)]
pub const fn FLEXSC_CHAIN_ARG(n: c_uint) -> c_uint {
    n + 1
}

/// The name of the memfd with a loop's counters.
pub const FLEXSC_STATS_NAME: &str = "flexsc-stats";
/// The library version that this crate was written for, as `FLEXSC_VERSION` in the
/// headers.
pub const FLEXSC_VERSION: c_uint = 0x900;

include!(concat!(env!("OUT_DIR"), "/headers.rs"));
