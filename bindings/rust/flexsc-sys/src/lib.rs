// SPDX-License-Identifier: MIT
//! The declarations of libflexsc's headers, `<flexsc/*.h>`, which say what each of
//! them does and what it asks of its caller.
//!
//! What the headers define inline isn't here: the functions named after system
//! calls (`flexsc_loop_call()` with a number of [`nr`] is what these do), those
//! of `<flexsc/default.h>` (each is its namesake with `flexsc_loop_default()`), and `<flexsc/netdb.h>`.
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

/// What a loop has done: flexsc-stats(3).
#[allow(missing_docs)]
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct flexsc_stats {
    pub posted: u64,
    pub completed: u64,
    pub cancelled: u64,
    pub waited: u64,
    pub batches: u64,
    pub batched: u64,
    pub mode_switches: u64,
    pub by_inline: u64,
    pub by_uring: u64,
    pub by_thread: u64,
    pub timers: u64,
    pub wakeups: u64,
    pub outstanding: u64,
    pub waiting: u64,
    pub entries: u64,
    pub max_entries: u64,
    pub threads: u64,
    pub max_threads: u64,
    pub bytes: u64,
    pub by_kmod: u64,
    pub failed_unseen: u64,
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

/// No time limit.
pub const FLEXSC_FOREVER: u64 = u64::MAX;

/// Run whatever the result of the call before it was.
pub const FLEXSC_CHAIN_ALWAYS: c_uint = 0x10;
/// Run only if the call before it transferred all.
pub const FLEXSC_CHAIN_FULL: c_uint = 0x20;

/// In a completed cb's flags: another completion follows.
pub const FLEXSC_CB_MORE: c_uint = 0x1;
/// In a completed cb's flags: it has a buffer.
pub const FLEXSC_CB_BUFFER: c_uint = 0x2;

/// Argument `n` is the result of the call before it.
#[allow(non_snake_case)]
pub const fn FLEXSC_CHAIN_ARG(n: c_uint) -> c_uint {
    n + 1
}

/// A file on a filesystem.
pub const FLEXSC_FD_REGULAR: c_uint = 0x1;
/// A socket or a pipe.
pub const FLEXSC_FD_STREAM: c_uint = 0x2;
/// No `O_NONBLOCK`, no time limits.
pub const FLEXSC_FD_BLOCKING: c_uint = 0x4;
/// `O_NONBLOCK`.
pub const FLEXSC_FD_NONBLOCK: c_uint = 0x8;

/// The name of the memfd that a loop's counters are in.
pub const FLEXSC_STATS_NAME: &str = "flexsc-stats";
/// How the page in it begins.
pub const FLEXSC_STATS_MAGIC: u64 = 0x6373_7865_6c66;

/// The version that this was written for, as `FLEXSC_VERSION` of the headers.
pub const FLEXSC_VERSION: c_uint = 0x100;

// What each function does: its header, and the manual page of its name.
#[allow(missing_docs)]
extern "C" {
    // <flexsc/call.h>
    pub fn flexsc_loop_call(
        r#loop: *mut flexsc_loop,
        cb: *mut flexsc_cb,
        nr: c_uint,
        a0: u64,
        a1: u64,
        a2: u64,
        a3: u64,
        a4: u64,
        a5: u64,
    ) -> c_int;
    pub fn flexsc__call3(
        r#loop: *mut flexsc_loop,
        cb: *mut flexsc_cb,
        nr: c_uint,
        a0: u64,
        a1: u64,
        a2: u64,
    ) -> c_int;
    pub fn flexsc_loop_cancel(r#loop: *mut flexsc_loop, cb: *mut flexsc_cb) -> c_int;
    pub fn flexsc_loop_cancel_fd(r#loop: *mut flexsc_loop, fd: c_int) -> c_int;
    pub fn flexsc_loop_deadline(r#loop: *mut flexsc_loop, cb: *mut flexsc_cb, ns: u64) -> c_int;
    pub fn flexsc_loop_call_after(
        r#loop: *mut flexsc_loop,
        cb: *mut flexsc_cb,
        before: *mut flexsc_cb,
        chain: c_uint,
        nr: c_uint,
        args: *const u64,
    ) -> c_int;

    // <flexsc/loop.h>
    pub fn flexsc_loop_timer(r#loop: *mut flexsc_loop, cb: *mut flexsc_cb, ns: u64) -> c_int;
    pub fn flexsc_loop_signal(r#loop: *mut flexsc_loop, cb: *mut flexsc_cb, signo: c_int) -> c_int;
    pub fn flexsc_loop_wake(r#loop: *mut flexsc_loop, cb: *mut flexsc_cb) -> c_int;

    // <flexsc/work.h>
    pub fn flexsc_loop_work(
        r#loop: *mut flexsc_loop,
        cb: *mut flexsc_cb,
        run: Option<unsafe extern "C" fn(arg: *mut c_void) -> i64>,
        arg: *mut c_void,
    ) -> c_int;

    pub fn flexsc_loop_work_after(
        r#loop: *mut flexsc_loop,
        cb: *mut flexsc_cb,
        before: *mut flexsc_cb,
        chain: c_uint,
        run: Option<unsafe extern "C" fn(arg: *mut c_void) -> i64>,
        arg: *mut c_void,
    ) -> c_int;

    // <flexsc/fd.h>
    pub fn flexsc_fd_forget(fd: c_int);
    pub fn flexsc_fd_hint(fd: c_int, flags: c_uint) -> c_int;
    pub fn flexsc_loop_fix_fd(r#loop: *mut flexsc_loop, fd: c_int) -> c_int;
    pub fn flexsc_loop_unfix_fd(r#loop: *mut flexsc_loop, fd: c_int) -> c_int;

    // <flexsc/multishot.h>
    pub fn flexsc_loop_accept_multishot(
        r#loop: *mut flexsc_loop,
        cb: *mut flexsc_cb,
        sockfd: c_int,
        flags: c_int,
    ) -> c_int;
    pub fn flexsc_buffers_create(
        r#loop: *mut flexsc_loop,
        buffers: *mut *mut flexsc_buffers,
        count: c_uint,
        size: usize,
    ) -> c_int;
    pub fn flexsc_buffers_destroy(buffers: *mut flexsc_buffers) -> c_int;
    pub fn flexsc_loop_recv_multishot(
        r#loop: *mut flexsc_loop,
        cb: *mut flexsc_cb,
        sockfd: c_int,
        buffers: *mut flexsc_buffers,
    ) -> c_int;
    pub fn flexsc_buffers_data(buffers: *const flexsc_buffers, cb: *const flexsc_cb)
        -> *mut c_void;
    pub fn flexsc_buffers_return(buffers: *mut flexsc_buffers, data: *mut c_void) -> c_int;

    // <flexsc/loop.h>
    pub fn flexsc_loop_create(
        r#loop: *mut *mut flexsc_loop,
        options: *const flexsc_options,
    ) -> c_int;
    pub fn flexsc_loop_destroy(r#loop: *mut flexsc_loop) -> c_int;
    pub fn flexsc_loop_run(r#loop: *mut flexsc_loop) -> c_int;
    pub fn flexsc_loop_stop(r#loop: *mut flexsc_loop) -> c_int;
    pub fn flexsc_loop_ref(r#loop: *mut flexsc_loop) -> c_int;
    pub fn flexsc_loop_unref(r#loop: *mut flexsc_loop) -> c_int;
    pub fn flexsc_loop_submit(r#loop: *mut flexsc_loop) -> c_int;
    pub fn flexsc_loop_dispatch(r#loop: *mut flexsc_loop) -> c_int;
    pub fn flexsc_loop_wait(r#loop: *mut flexsc_loop, ns: u64) -> c_int;
    pub fn flexsc_loop_harvest(
        r#loop: *mut flexsc_loop,
        done: *mut *mut flexsc_cb,
        n: c_uint,
    ) -> c_int;
    pub fn flexsc_loop_fd(r#loop: *mut flexsc_loop) -> c_int;
    pub fn flexsc_loop_prepare(r#loop: *mut flexsc_loop, ns: *mut u64) -> c_int;
    pub fn flexsc_loop_engine(r#loop: *const flexsc_loop) -> *const c_char;
    pub fn flexsc_loop_why(r#loop: *const flexsc_loop) -> *const c_char;
    pub fn flexsc_engine_probe(engine: *const c_char, why: *mut c_char, size: usize) -> c_int;
    pub fn flexsc_engine_name(i: c_uint) -> *const c_char;
    pub fn flexsc_version() -> c_uint;

    // <flexsc/default.h>
    pub fn flexsc_loop_default() -> *mut flexsc_loop;
    pub fn flexsc_loop_set_default(r#loop: *mut flexsc_loop) -> c_int;
    pub fn flexsc_init() -> c_int;
    pub fn flexsc_fini() -> c_int;

    // <flexsc/stats.h>
    pub fn flexsc_loop_stats(
        r#loop: *const flexsc_loop,
        stats: *mut flexsc_stats,
        size: usize,
    ) -> c_int;
}
