// SPDX-License-Identifier: MIT
//! A file's attributes, as returned by `statx()`.

use crate::call::{outcome, Kind};
use crate::driver::{Driver, Room};
use crate::file::Fd;
use std::io;
use std::mem::size_of;
use std::rc::Rc;
use std::time::{Duration, SystemTime};

/// A time of a file.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub struct Timestamp {
    /// Seconds since 1970.
    pub tv_sec: i64,
    /// Nanoseconds of the second.
    pub tv_nsec: u32,
    #[doc(hidden)]
    pub __reserved: i32,
}

impl Timestamp {
    /// The time in the standard library's form. None: out of its range.
    pub fn system_time(&self) -> Option<SystemTime> {
        let seconds = Duration::from_secs(self.tv_sec.unsigned_abs());
        let whole = match self.tv_sec < 0 {
            true => SystemTime::UNIX_EPOCH.checked_sub(seconds),
            false => SystemTime::UNIX_EPOCH.checked_add(seconds),
        };
        whole?.checked_add(Duration::from_nanos(self.tv_nsec.into()))
    }
}

/// The fields of the kernel's `struct statx` that all kernels have: statx(2).
#[repr(C)]
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
#[allow(missing_docs)]
pub struct Statx {
    pub stx_mask: u32,
    pub stx_blksize: u32,
    pub stx_attributes: u64,
    pub stx_nlink: u32,
    pub stx_uid: u32,
    pub stx_gid: u32,
    pub stx_mode: u16,
    #[doc(hidden)]
    pub __spare0: u16,
    pub stx_ino: u64,
    pub stx_size: u64,
    pub stx_blocks: u64,
    pub stx_attributes_mask: u64,
    pub stx_atime: Timestamp,
    pub stx_btime: Timestamp,
    pub stx_ctime: Timestamp,
    pub stx_mtime: Timestamp,
    pub stx_rdev_major: u32,
    pub stx_rdev_minor: u32,
    pub stx_dev_major: u32,
    pub stx_dev_minor: u32,
    #[doc(hidden)]
    pub __rest: [u64; 14],
}

// The kernel fills the whole structure.
const _: () = assert!(size_of::<Statx>() == size_of::<Room>());

impl Statx {
    /// Is it a regular file?
    pub fn is_file(&self) -> bool {
        self.stx_mode & 0o170000 == 0o100000
    }

    /// Is it a folder?
    pub fn is_dir(&self) -> bool {
        self.stx_mode & 0o170000 == 0o040000
    }
}

/// `statx()`, with the file or the path that it queries.
pub struct Stat {
    pub(crate) _file: Option<Rc<Fd>>,
    pub(crate) _path: Vec<u8>,
}

impl Kind for Stat {
    type Output = io::Result<Statx>;

    fn finish(self, ret: i64, room: &Room, _: &Rc<Driver>) -> io::Result<Statx> {
        // SAFETY: Both types have the same size, the room is aligned to eight bytes,
        // and any bytes are a valid structure.
        outcome(ret).map(|_| unsafe { *(room as *const Room).cast::<Statx>() })
    }
}
