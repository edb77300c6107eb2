// SPDX-License-Identifier: MIT
//! Open files, and their calls. Used by the owner only.
//!
//! A file's calls share its ownership with its [`File`]. The descriptor is closed after
//! the last of them, so another file can't get its number while a call is pending.

use crate::buf::{IoBuf, IoBufMut};
use crate::call::{outcome, Call, Done, Kind};
use crate::driver::{address, Driver, Room, ECANCELED, ESHUTDOWN};
use crate::net;
use crate::run::Handle;
use crate::stat::Stat;
use flexsc_sys as sys;
use flexsc_sys::nr;
use std::cell::{Cell, RefCell};
use std::ffi::CString;
use std::fmt;
use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::os::raw::c_uint;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::io::{AsFd, AsRawFd, BorrowedFd, FromRawFd, IntoRawFd, OwnedFd, RawFd};
use std::path::Path;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

const AT_FDCWD: RawFd = -100;
const AT_EMPTY_PATH: i32 = 0x1000;
const STATX_BASIC_AND_BIRTH: u32 = 0xfff;
const MSG_TRUNC: i32 = 0x20;
const MSG_NOSIGNAL: i32 = 0x4000;
const SOCK_STREAM: i32 = 1;
const SOCK_CLOEXEC: i32 = 0o2000000;
const O_WRONLY: i32 = 1;
const O_RDWR: i32 = 2;
const O_CREAT: i32 = 0o100;
const O_EXCL: i32 = 0o200;
const O_TRUNC: i32 = 0o1000;
const O_APPEND: i32 = 0o2000;
const O_CLOEXEC: i32 = 0o2000000;

const GIVEN_AWAY: RawFd = -1;

/// Announce that code outside this crate has closed a descriptor, or changed its
/// `O_NONBLOCK` flag or its time limits. Call this before [`Handle::syscall`] or a
/// [`File`] uses that number again: the library then reads the descriptor's properties
/// anew. It always does so when a [`File`] is made of a descriptor.
pub fn forget(descriptor: RawFd) {
    // SAFETY: Every number is allowed.
    unsafe { sys::flexsc_fd_forget(descriptor) }
}

fn close_plainly(raw: RawFd) {
    // SAFETY: The caller owns the descriptor.
    drop(unsafe { OwnedFd::from_raw_fd(raw) });
    forget(raw);
}

/// A descriptor, closed when its file and all of its calls are dropped.
pub struct Fd {
    driver: Rc<Driver>,
    raw: Cell<RawFd>,
    closing: RefCell<Option<Rc<Closing>>>,
}

impl Drop for Fd {
    fn drop(&mut self) {
        let raw = self.raw.get();
        if raw == GIVEN_AWAY {
            return;
        }
        let call = close(&self.driver, raw);
        match self.closing.get_mut().take() {
            Some(closing) => closing.begin(call),
            None => call.detach(),
        }
        if !self.driver.running.get() {
            self.driver.submit();
        }
    }
}

/// `close()`. The descriptor is closed even if the call is cancelled.
pub struct Close {
    raw: RawFd,
}

impl Kind for Close {
    type Output = io::Result<()>;
    const CANCELS: bool = false;

    fn finish(self, ret: i64, _: &Room, _: &Rc<Driver>) -> io::Result<()> {
        if ret == -i64::from(ECANCELED) {
            // The close() never started, because the loop ended or no thread could be made.
            close_plainly(self.raw);
            return Ok(());
        }
        outcome(ret).map(drop)
    }

    fn refused(self, _: i32, _: &Rc<Driver>) -> io::Result<()> {
        close_plainly(self.raw);
        Ok(())
    }

    fn forgotten(self, ret: i64, driver: &Rc<Driver>) {
        drop(self.finish(ret, &[0; 32], driver));
    }
}

fn close(driver: &Rc<Driver>, raw: RawFd) -> Call<Close> {
    if driver.closing.get() {
        // The end of the loop might cancel a posted close.
        return Call::refused(driver, Close { raw }, ESHUTDOWN);
    }
    // SAFETY: The caller owns the descriptor; the call has no pointers.
    unsafe {
        Call::post(driver, Close { raw }, |raw_loop, cb, _| {
            sys::flexsc__call3(raw_loop, cb, nr::CLOSE, raw as u64, 0, 0)
        })
    }
}

/// Waits for the last of a file's calls, and then for its close.
#[derive(Default)]
struct Closing {
    call: RefCell<Option<Call<Close>>>,
    waker: RefCell<Option<Waker>>,
}

impl Closing {
    fn begin(&self, call: Call<Close>) {
        *self.call.borrow_mut() = Some(call);
        let waker = self.waker.borrow_mut().take();
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}

struct Closed(Rc<Closing>);

impl Future for Closed {
    type Output = io::Result<()>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        if let Some(call) = &mut *self.0.call.borrow_mut() {
            return Pin::new(call).poll(context);
        }
        let waker = context.waker().clone();
        let old = self.0.waker.borrow_mut().replace(waker);
        drop(old);
        Poll::Pending
    }
}

/// An open file: a regular file, a pipe, or a socket. Dropping it closes it, after its
/// pending calls.
///
/// If the descriptor is blocking, as all that this crate opens are, reads and writes
/// wait while the loop continues. If it is nonblocking they fail with `WouldBlock`.
pub struct File {
    fd: Rc<Fd>,
}

impl fmt::Debug for File {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "File({})", self.fd.raw.get())
    }
}

impl AsRawFd for File {
    fn as_raw_fd(&self) -> RawFd {
        self.fd.raw.get()
    }
}

impl AsFd for File {
    fn as_fd(&self) -> BorrowedFd<'_> {
        // SAFETY: The descriptor stays open while the file is borrowed.
        unsafe { BorrowedFd::borrow_raw(self.fd.raw.get()) }
    }
}

impl File {
    /// Make a file of a descriptor that a call of the loop has opened.
    fn made(driver: &Rc<Driver>, raw: RawFd) -> File {
        let fd = Fd {
            driver: driver.clone(),
            raw: Cell::new(raw),
            closing: RefCell::new(None),
        };
        File { fd: Rc::new(fd) }
    }

    fn raw(&self) -> u64 {
        self.fd.raw.get() as u64
    }

    /// Post a call of this file. `rest` are the arguments after the descriptor.
    ///
    /// # Safety
    ///
    /// As for [`Call::post`].
    unsafe fn call<K: Kind>(&self, kind: K, number: c_uint, rest: [u64; 5]) -> Call<K> {
        let raw = self.raw();
        let [b, c, d, e, f] = rest;
        // SAFETY: The caller upholds the contract.
        unsafe {
            Call::post(&self.fd.driver, kind, |raw_loop, cb, _| {
                sys::flexsc_loop_call(raw_loop, cb, number, raw, b, c, d, e, f)
            })
        }
    }

    fn fill<B: IoBufMut>(&self, mut buffer: B, number: c_uint, last: u64) -> Call<Read<B>> {
        let (to, room) = (address(buffer.stable_mut_ptr()), buffer.room() as u64);
        let _file = self.fd.clone();
        // SAFETY: By IoBufMut, only the kernel writes to the buffer until the call's
        // end.
        unsafe { self.call(Read { buffer, _file }, number, [to, room, last, 0, 0]) }
    }

    fn take<B: IoBuf>(&self, buffer: B, number: c_uint, last: u64) -> Call<Write<B>> {
        let (from, length) = (address(buffer.stable_ptr()), buffer.bytes() as u64);
        let _file = self.fd.clone();
        // SAFETY: By IoBuf, the buffer doesn't change until the call's end.
        unsafe { self.call(Write { buffer, _file }, number, [from, length, last, 0, 0]) }
    }

    fn plain(&self, number: c_uint, argument: u64) -> Call<Done> {
        let _file = self.fd.clone();
        // SAFETY: The callers make only calls without pointers.
        unsafe { self.call(Done { _file }, number, [argument, 0, 0, 0, 0]) }
    }

    /// `read()`: reads the available bytes, up to the buffer's room. 0: the end.
    pub fn read<B: IoBufMut>(&self, buffer: B) -> Call<Read<B>> {
        self.fill(buffer, nr::READ, 0)
    }

    /// `pread()`: like read(), but from an offset.
    pub fn pread<B: IoBufMut>(&self, buffer: B, offset: u64) -> Call<Read<B>> {
        self.fill(buffer, nr::PREAD64, offset)
    }

    /// `write()`: writes all bytes to a blocking pipe or socket, and as many as fit to a
    /// regular file.
    pub fn write<B: IoBuf>(&self, buffer: B) -> Call<Write<B>> {
        self.take(buffer, nr::WRITE, 0)
    }

    /// `pwrite()`: like write(), but at an offset.
    pub fn pwrite<B: IoBuf>(&self, buffer: B, offset: u64) -> Call<Write<B>> {
        self.take(buffer, nr::PWRITE64, offset)
    }

    /// `recv()`, with flags such as `MSG_PEEK`. `MSG_TRUNC` is ignored, because it
    /// would count bytes that aren't in the buffer.
    pub fn recv<B: IoBufMut>(&self, buffer: B, flags: i32) -> Call<Read<B>> {
        self.fill(buffer, nr::RECVFROM, (flags & !MSG_TRUNC) as u64)
    }

    /// `send()`, without `SIGPIPE`.
    pub fn send<B: IoBuf>(&self, buffer: B, flags: i32) -> Call<Write<B>> {
        self.take(buffer, nr::SENDTO, (flags | MSG_NOSIGNAL) as u64)
    }

    /// `accept()`: a connection, and the peer's address if it is an IPv4 or IPv6
    /// address.
    pub fn accept(&self) -> Call<Accept> {
        let raw = self.raw();
        let kind = Accept {
            _listener: self.fd.clone(),
        };
        // SAFETY: The address and its length are in the room.
        unsafe {
            Call::post(&self.fd.driver, kind, |raw_loop, cb, room| {
                (*room)[0] = 0;
                (*room)[net::LENGTH] = u64::from_ne_bytes(length_bytes(net::MOST));
                let length = (room as *mut u64).add(net::LENGTH);
                let flags = SOCK_CLOEXEC as u64;
                let (to, length) = (address(room), address(length));
                sys::flexsc_loop_call(raw_loop, cb, nr::ACCEPT4, raw, to, length, flags, 0, 0)
            })
        }
    }

    /// `connect()` of a socket.
    pub fn connect(&self, to: &SocketAddr) -> Call<Done> {
        let raw = self.raw();
        let (bytes, length) = net::encode(to);
        let kind = Done {
            _file: self.fd.clone(),
        };
        // SAFETY: The address is in the room.
        unsafe {
            Call::post(&self.fd.driver, kind, |raw_loop, cb, room| {
                (room as *mut [u8; 28]).write(bytes);
                let to = address(room);
                sys::flexsc__call3(raw_loop, cb, nr::CONNECT, raw, to, length.into())
            })
        }
    }

    /// `shutdown()` of a connection.
    pub fn shutdown(&self, how: std::net::Shutdown) -> Call<Done> {
        let how = match how {
            std::net::Shutdown::Read => 0,
            std::net::Shutdown::Write => 1,
            std::net::Shutdown::Both => 2,
        };
        self.plain(nr::SHUTDOWN, how)
    }

    /// `fsync()`
    pub fn fsync(&self) -> Call<Done> {
        self.plain(nr::FSYNC, 0)
    }

    /// `fdatasync()`
    pub fn fdatasync(&self) -> Call<Done> {
        self.plain(nr::FDATASYNC, 0)
    }

    /// `statx()` of this file.
    pub fn statx(&self) -> Call<Stat> {
        let (fd, file) = (self.fd.raw.get(), Some(self.fd.clone()));
        statx(&self.fd.driver, fd, vec![0], AT_EMPTY_PATH, file)
    }

    /// Close the file, after its pending calls. The file is closed even if this future is
    /// never polled.
    pub async fn close(self) -> io::Result<()> {
        let closing = Rc::new(Closing::default());
        *self.fd.closing.borrow_mut() = Some(closing.clone());
        drop(self);
        Closed(closing).await
    }

    /// The descriptor, for other code.
    ///
    /// # Errors
    ///
    /// The file, if calls of it are pending.
    pub fn into_fd(self) -> Result<OwnedFd, File> {
        let fd = Rc::try_unwrap(self.fd).map_err(|fd| File { fd })?;
        let raw = fd.raw.replace(GIVEN_AWAY);
        // SAFETY: The descriptor is open, and this object gave up its ownership.
        Ok(unsafe { OwnedFd::from_raw_fd(raw) })
    }
}

/// A length as the kernel's four bytes, in a word.
fn length_bytes(length: u32) -> [u8; 8] {
    let mut bytes = [0; 8];
    bytes[..4].copy_from_slice(&length.to_ne_bytes());
    bytes
}

/// A call that fills a buffer. Its output is the result and the buffer.
pub struct Read<B: IoBufMut> {
    buffer: B,
    _file: Rc<Fd>,
}

impl<B: IoBufMut> Kind for Read<B> {
    type Output = (io::Result<usize>, B);

    fn finish(mut self, ret: i64, _: &Room, _: &Rc<Driver>) -> Self::Output {
        let result = outcome(ret).map(|n| n as usize);
        if let Ok(n) = result {
            // SAFETY: The kernel has written so many bytes.
            unsafe { self.buffer.filled(n) };
        }
        (result, self.buffer)
    }
}

/// A call that reads from a buffer. Its output is the result and the buffer.
pub struct Write<B: IoBuf> {
    buffer: B,
    _file: Rc<Fd>,
}

impl<B: IoBuf> Kind for Write<B> {
    type Output = (io::Result<usize>, B);

    fn finish(self, ret: i64, _: &Room, _: &Rc<Driver>) -> Self::Output {
        (outcome(ret).map(|n| n as usize), self.buffer)
    }
}

/// `accept()`. If the future was dropped, a connection that is accepted later is
/// closed.
pub struct Accept {
    _listener: Rc<Fd>,
}

impl Kind for Accept {
    type Output = io::Result<(File, Option<SocketAddr>)>;

    fn finish(self, ret: i64, room: &Room, driver: &Rc<Driver>) -> Self::Output {
        let raw = outcome(ret)? as RawFd;
        Ok((File::made(driver, raw), net::decode(room)))
    }

    fn forgotten(self, ret: i64, driver: &Rc<Driver>) {
        drop(outcome(ret).map(|raw| File::made(driver, raw as RawFd)));
    }
}

/// A call that opens a file. If the future was dropped, a file that is opened later is
/// closed.
pub struct Open {
    _folder: Option<Rc<Fd>>,
    // Ends with a zero. It is a vector, because a vector may be moved while the kernel
    // reads its contents.
    _path: Vec<u8>,
}

impl Kind for Open {
    type Output = io::Result<File>;

    fn finish(self, ret: i64, _: &Room, driver: &Rc<Driver>) -> io::Result<File> {
        outcome(ret).map(|raw| File::made(driver, raw as RawFd))
    }

    fn forgotten(self, ret: i64, driver: &Rc<Driver>) {
        drop(self.finish(ret, &[0; 32], driver));
    }
}

/// A path in the kernel's form. A path that contains a zero becomes the empty path, for
/// which the kernel returns ENOENT.
fn path_bytes(path: &Path) -> Vec<u8> {
    CString::new(path.as_os_str().as_bytes())
        .unwrap_or_default()
        .into_bytes_with_nul()
}

fn statx(
    driver: &Rc<Driver>,
    folder: RawFd,
    path: Vec<u8>,
    flags: i32,
    file: Option<Rc<Fd>>,
) -> Call<Stat> {
    let text = address(path.as_ptr());
    let mask = u64::from(STATX_BASIC_AND_BIRTH);
    let kind = Stat {
        _file: file,
        _path: path,
    };
    // SAFETY: The kind owns the path, and the structure is in the room.
    unsafe {
        Call::post(driver, kind, |raw, cb, room| {
            let (folder, flags, to) = (folder as u64, flags as u64, address(room));
            sys::flexsc_loop_call(raw, cb, nr::STATX, folder, text, flags, mask, to, 0)
        })
    }
}

impl Handle {
    /// `openat()`: the path is relative to a folder, or to the current one. `O_CLOEXEC`
    /// is added.
    pub fn openat(
        &self,
        folder: Option<&File>,
        path: impl AsRef<Path>,
        flags: i32,
        mode: u32,
    ) -> Call<Open> {
        let path = path_bytes(path.as_ref());
        let text = address(path.as_ptr());
        let at = folder.map_or(AT_FDCWD, |folder| folder.fd.raw.get());
        let kind = Open {
            _folder: folder.map(|folder| folder.fd.clone()),
            _path: path,
        };
        let flags = (flags | O_CLOEXEC) as u64;
        // SAFETY: The kind owns the path.
        unsafe {
            Call::post(&self.driver, kind, |raw, cb, _| {
                let (at, mode) = (at as u64, mode.into());
                sys::flexsc_loop_call(raw, cb, nr::OPENAT, at, text, flags, mode, 0, 0)
            })
        }
    }

    /// Open a file for reading.
    pub fn open(&self, path: impl AsRef<Path>) -> Call<Open> {
        OpenOptions::new().read(true).open(self, path)
    }

    /// Create a file, or truncate an existing one, and open it for writing.
    pub fn create(&self, path: impl AsRef<Path>) -> Call<Open> {
        let mut options = OpenOptions::new();
        options.write(true).create(true).truncate(true);
        options.open(self, path)
    }

    /// `statx()` of a path.
    pub fn statx(&self, path: impl AsRef<Path>) -> Call<Stat> {
        statx(&self.driver, AT_FDCWD, path_bytes(path.as_ref()), 0, None)
    }

    /// Let the loop make the calls of a descriptor, for instance of a listener or a
    /// stream of the standard library.
    pub fn adopt(&self, descriptor: impl Into<OwnedFd>) -> File {
        let raw = descriptor.into().into_raw_fd();
        forget(raw);
        File::made(&self.driver, raw)
    }

    /// Open a TCP connection.
    pub async fn connect(&self, to: &SocketAddr) -> io::Result<File> {
        let family = match to {
            SocketAddr::V4(_) => net::AF_INET,
            SocketAddr::V6(_) => net::AF_INET6,
        };
        let kind = Open {
            _folder: None,
            _path: Vec::new(),
        };
        // SAFETY: The call has no pointers.
        let socket = unsafe {
            Call::post(&self.driver, kind, |raw, cb, _| {
                let how = (SOCK_STREAM | SOCK_CLOEXEC) as u64;
                sys::flexsc__call3(raw, cb, nr::SOCKET, family.into(), how, 0)
            })
        };
        let socket = socket.await?;
        socket.connect(to).await?;
        Ok(socket)
    }
}

/// Options for opening a file, like [`std::fs::OpenOptions`].
#[derive(Clone, Debug)]
pub struct OpenOptions {
    read: bool,
    write: bool,
    flags: i32,
    mode: u32,
}

impl Default for OpenOptions {
    fn default() -> OpenOptions {
        OpenOptions::new()
    }
}

impl OpenOptions {
    /// Read-only, until options are set.
    pub fn new() -> OpenOptions {
        OpenOptions {
            read: false,
            write: false,
            flags: 0,
            mode: 0o666,
        }
    }

    fn flag(&mut self, flag: i32, set: bool) -> &mut OpenOptions {
        match set {
            true => self.flags |= flag,
            false => self.flags &= !flag,
        }
        self
    }

    /// Open for reading.
    pub fn read(&mut self, set: bool) -> &mut OpenOptions {
        self.read = set;
        self
    }

    /// Open for writing.
    pub fn write(&mut self, set: bool) -> &mut OpenOptions {
        self.write = set;
        self
    }

    /// Write at the end of the file.
    pub fn append(&mut self, set: bool) -> &mut OpenOptions {
        self.write = set;
        self.flag(O_APPEND, set)
    }

    /// Truncate the file.
    pub fn truncate(&mut self, set: bool) -> &mut OpenOptions {
        self.flag(O_TRUNC, set)
    }

    /// Create the file if it doesn't exist.
    pub fn create(&mut self, set: bool) -> &mut OpenOptions {
        self.flag(O_CREAT, set)
    }

    /// Create the file; fail if it exists.
    pub fn create_new(&mut self, set: bool) -> &mut OpenOptions {
        self.flag(O_CREAT | O_EXCL, set)
    }

    /// Additional flags of open(2).
    pub fn custom_flags(&mut self, flags: i32) -> &mut OpenOptions {
        self.flag(flags, true)
    }

    /// Permissions of a new file, before the umask is applied.
    pub fn mode(&mut self, mode: u32) -> &mut OpenOptions {
        self.mode = mode;
        self
    }

    /// Open the file.
    pub fn open(&self, handle: &Handle, path: impl AsRef<Path>) -> Call<Open> {
        let access = match (self.read, self.write) {
            (true, true) => O_RDWR,
            (false, true) => O_WRONLY,
            (_, false) => 0,
        };
        handle.openat(None, path, self.flags | access, self.mode)
    }
}
