// SPDX-License-Identifier: MIT
//! Calls on files, pipes and sockets return what plain system calls return.

mod common;

use common::{adopted_pipe, error_of, pipe, with, Folder, ALL, ASYNCHRONOUS};
use flexsc::{sys::nr, OpenOptions};
use std::fs;
use std::io::{self, Read as _, Write as _};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::os::raw::c_int;
use std::os::unix::fs::MetadataExt;
use std::os::unix::io::AsRawFd;
use std::time::{Duration, Instant};

const ENOENT: i32 = 2;
const EBADF: i32 = 9;
const EAGAIN: i32 = 11;
const ENOTSOCK: i32 = 88;
const ETIME: i32 = 62;
const ECANCELED: i32 = 125;

#[test]
fn a_file_is_written_and_read() {
    let folder = Folder::new();
    with(ALL, |flexsc| {
        let path = folder.join("file");
        flexsc.block_on(async {
            let file = flexsc.create(&path).await.unwrap();
            let (n, text) = file.write("hello, ").await;
            assert_eq!((n.unwrap(), text), (7, "hello, "));
            let (n, text) = file.pwrite(b"world".to_vec(), 7).await;
            assert_eq!((n.unwrap(), &text[..]), (5, &b"world"[..]));
            file.fsync().await.unwrap();
            file.fdatasync().await.unwrap();
            file.close().await.unwrap();

            let file = flexsc.open(&path).await.unwrap();
            let (n, buffer) = file.read(Vec::with_capacity(5)).await;
            assert_eq!((n.unwrap(), &buffer[..]), (5, &b"hello"[..]));
            // Existing contents of the buffer are replaced.
            let (n, buffer) = file.pread(vec![b'x'; 100], 7).await;
            assert_eq!((n.unwrap(), &buffer[..]), (5, &b"world"[..]));
            let (n, buffer) = file.pread(buffer, 100).await;
            assert_eq!((n.unwrap(), buffer.len()), (0, 0));
        });
        assert_eq!(fs::read(&path).unwrap(), b"hello, world");
    });
}

#[test]
fn options_open_as_those_of_the_standard_library() {
    let folder = Folder::new();
    with(ALL, |flexsc| {
        let path = folder.join(flexsc.engine());
        flexsc.block_on(async {
            let mut new = OpenOptions::new();
            new.write(true).create_new(true).mode(0o600);
            let file = new.open(&flexsc, &path).await.unwrap();
            assert_eq!(file.statx().await.unwrap().stx_mode & 0o777, 0o600);
            let again = new.open(&flexsc, &path).await.unwrap_err();
            assert_eq!(again.kind(), io::ErrorKind::AlreadyExists);
            file.write("one").await.0.unwrap();

            let mut append = OpenOptions::new();
            let file = append.append(true).open(&flexsc, &path).await.unwrap();
            file.write("two").await.0.unwrap();
            let (n, buffer) = file.read(vec![0]).await;
            assert_eq!((error_of(n), buffer), (EBADF, vec![0]));
            assert_eq!(fs::read(&path).unwrap(), b"onetwo");

            let inside = flexsc.open(folder.join("")).await.unwrap();
            let file = flexsc.openat(Some(&inside), flexsc.engine(), 2, 0).await;
            let file = file.unwrap();
            file.pwrite("X", 0).await.0.unwrap();
            let (_, text) = file.pread(Vec::with_capacity(9), 0).await;
            assert_eq!(text, b"Xnetwo");
        });
    });
}

#[test]
fn statx_says_what_the_standard_library_says() {
    let folder = Folder::new();
    let path = folder.join("file");
    fs::write(&path, [7; 5000]).unwrap();
    let wanted = fs::metadata(&path).unwrap();
    with(ALL, |flexsc| {
        flexsc.block_on(async {
            let file = flexsc.open(&path).await.unwrap();
            for stat in [
                file.statx().await.unwrap(),
                flexsc.statx(&path).await.unwrap(),
            ] {
                assert!(stat.is_file() && !stat.is_dir());
                assert_eq!(stat.stx_size, 5000);
                assert_eq!(stat.stx_ino, wanted.ino());
                assert_eq!(u32::from(stat.stx_mode), wanted.mode());
                assert_eq!(u64::from(stat.stx_nlink), wanted.nlink());
                assert_eq!((stat.stx_uid, stat.stx_gid), (wanted.uid(), wanted.gid()));
                assert_eq!(u64::from(stat.stx_blksize), wanted.blksize());
                assert_eq!(stat.stx_blocks, wanted.blocks());
                assert_eq!(stat.stx_mtime.system_time(), wanted.modified().ok());
                assert_eq!(stat.stx_atime.tv_sec, wanted.atime());
                assert_eq!(stat.stx_ctime.tv_sec, wanted.ctime());
                let dev = u64::from(stat.stx_dev_major) << 8 | u64::from(stat.stx_dev_minor);
                assert_eq!(dev, wanted.dev());
            }
            assert!(flexsc.statx(folder.join("")).await.unwrap().is_dir());
        });
    });
}

#[test]
fn errors_are_the_kernels() {
    with(ALL, |flexsc| {
        flexsc.block_on(async {
            assert_eq!(error_of(flexsc.open("/nowhere/at/all").await), ENOENT);
            assert_eq!(error_of(flexsc.statx("").await), ENOENT);
            // C can't represent this path.
            assert_eq!(error_of(flexsc.open("/dev\0/null").await), ENOENT);
        });
    });
}

#[test]
fn calls_run_together_and_are_awaited_in_any_order() {
    with(ASYNCHRONOUS, |flexsc| {
        flexsc.block_on(async {
            let (reader, writer) = adopted_pipe(&flexsc);
            let read = reader.read(Vec::with_capacity(16));
            let write = writer.write("together");
            let (n, text) = read.await;
            assert_eq!((n.unwrap(), &text[..]), (8, &b"together"[..]));
            assert_eq!(write.await.0.unwrap(), 8);
        });
    });
}

#[test]
fn connections_are_accepted_and_made() {
    with(ASYNCHRONOUS, |flexsc| {
        for address in ["127.0.0.1:0", "[::1]:0"] {
            let listener = match TcpListener::bind(address) {
                Ok(listener) => listener,
                Err(error) => {
                    eprintln!("skipped with {address}: {error}");
                    continue;
                }
            };
            let address = listener.local_addr().unwrap();
            flexsc.block_on(async {
                let listener = flexsc.adopt(listener);
                let accept = listener.accept();
                let client = flexsc.connect(&address).await.unwrap();
                let (server, from) = accept.await.unwrap();
                let client = TcpStream::from(client.into_fd().unwrap());
                assert_eq!(from, Some(client.local_addr().unwrap()));
                let client = flexsc.adopt(client);

                assert_eq!(client.send("ping", 0).await.0.unwrap(), 4);
                let peek = 2;
                for flags in [peek, 0] {
                    let (n, text) = server.recv(Vec::with_capacity(16), flags).await;
                    assert_eq!((n.unwrap(), &text[..]), (4, &b"ping"[..]));
                }
                server.shutdown(Shutdown::Write).await.unwrap();
                assert_eq!(client.recv(vec![0; 4], 0).await.0.unwrap(), 0);
                drop(client);
                assert_eq!(server.read(vec![0; 4]).await.0.unwrap(), 0);
                // No SIGPIPE is raised; the first send may still succeed.
                server.send("x", 0).await.0.unwrap_err();
            });
        }
    });
}

#[test]
fn a_truncating_recv_shows_no_memory_that_was_not_filled() {
    with(ASYNCHRONOUS, |flexsc| {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let server = flexsc.adopt(listener.accept().unwrap().0);
        client.write_all(b"data").unwrap();
        let truncate = 0x20;
        let (n, text) = flexsc.block_on(server.recv(Vec::with_capacity(4), truncate));
        assert_eq!((n.unwrap(), &text[..]), (4, &b"data"[..]));
    });
}

#[test]
fn any_call_is_made_by_its_number() {
    with(ALL, |flexsc| {
        flexsc.block_on(async {
            // SAFETY: getpid() only returns a number.
            let (pid, kept) = unsafe { flexsc.syscall(nr::GETPID, [0; 6], "kept") }.await;
            assert_eq!((pid.unwrap(), kept), (std::process::id().into(), "kept"));
            // SAFETY: The library doesn't make exit().
            let refused = unsafe { flexsc.syscall(nr::EXIT, [0; 6], 5) }.await;
            assert_eq!(
                (refused.0.unwrap_err().raw_os_error(), refused.1),
                (Some(95), 5)
            );
        });
    });
}

#[test]
fn sleeps_end_in_their_order_and_not_early() {
    with(ALL, |flexsc| {
        let begin = Instant::now();
        flexsc.block_on(async {
            let long = flexsc.sleep(Duration::from_millis(30));
            let short = flexsc.sleep(Duration::from_millis(10));
            flexsc.sleep(Duration::ZERO).await.unwrap();
            short.await.unwrap();
            assert!(begin.elapsed() >= Duration::from_millis(10));
            long.await.unwrap();
        });
        assert!(begin.elapsed() >= Duration::from_millis(30));
        let forever = flexsc.sleep(Duration::MAX);
        forever.cancel();
        assert_eq!(error_of(flexsc.block_on(forever)), ECANCELED);
    });
}

#[test]
fn a_call_ends_by_its_deadline_and_gives_its_buffer_back() {
    with(ASYNCHRONOUS, |flexsc| {
        let (reader, _writer) = adopted_pipe(&flexsc);
        let call = reader.read(vec![1, 2, 3]);
        let (n, buffer) = flexsc.block_on(call.deadline(Duration::from_millis(5)));
        assert_eq!((error_of(n), buffer), (ETIME, vec![1, 2, 3]));
    });
}

#[test]
fn a_cancelled_call_gives_its_buffer_back() {
    with(ASYNCHRONOUS, |flexsc| {
        flexsc.block_on(async {
            let (reader, _writer) = adopted_pipe(&flexsc);
            let call = reader.read(vec![1, 2, 3]);
            flexsc.sleep(Duration::from_millis(2)).await.unwrap();
            call.cancel();
            let (n, buffer) = call.await;
            assert!([ECANCELED, 4].contains(&error_of(n)));
            assert_eq!(buffer, [1, 2, 3]);
        });
    });
}

#[test]
fn a_future_has_a_time_limit() {
    with(ASYNCHRONOUS, |flexsc| {
        flexsc.block_on(async {
            let (reader, writer) = adopted_pipe(&flexsc);
            let two = async {
                reader.read(vec![0; 4]).await.0.unwrap();
                reader.read(vec![0; 4]).await.0.unwrap()
            };
            writer.write("one").await.0.unwrap();
            let late = flexsc.timeout(Duration::from_millis(5), two).await;
            assert_eq!(late.unwrap_err().kind(), io::ErrorKind::TimedOut);
            let soon = flexsc.timeout(Duration::MAX, async { 5 }).await;
            assert_eq!(soon.unwrap(), 5);
        });
    });
}

#[test]
fn a_file_is_closed_after_its_pending_calls() {
    with(ASYNCHRONOUS, |flexsc| {
        flexsc.block_on(async {
            let (reader, writer) = adopted_pipe(&flexsc);
            let read = reader.read(Vec::with_capacity(4));
            let close = flexsc.spawn(reader.close());
            flexsc.sleep(Duration::from_millis(2)).await.unwrap();
            assert!(!close.is_finished());
            writer.write("last").await.0.unwrap();
            let (n, text) = read.await;
            assert_eq!((n.unwrap(), &text[..]), (4, &b"last"[..]));
            close.await.unwrap().unwrap();
            // The read end is closed.
            writer.write("x").await.0.unwrap_err();
        });
    });
}

#[test]
fn a_descriptor_is_given_away_unless_calls_are_pending() {
    with(ASYNCHRONOUS, |flexsc| {
        flexsc.block_on(async {
            let (reader, writer) = adopted_pipe(&flexsc);
            let read = reader.read(Vec::with_capacity(4));
            let number = reader.as_raw_fd();
            let reader = reader.into_fd().unwrap_err();
            assert_eq!(reader.as_raw_fd(), number);
            writer.write("1234").await.0.unwrap();
            read.await.0.unwrap();
            let mut writer = fs::File::from(writer.into_fd().unwrap());
            writer.write_all(b"plain").unwrap();
            drop(writer);
            let mut text = String::new();
            let mut reader = fs::File::from(reader.into_fd().unwrap());
            reader.read_to_string(&mut text).unwrap();
            assert_eq!(text, "plain");
        });
    });
}

#[test]
fn a_pending_call_keeps_its_file() {
    with(ALL, |flexsc| {
        flexsc.block_on(async {
            let open = || flexsc.adopt(fs::File::open("/proc/self/status").unwrap());
            let posted = flexsc.stats().posted;
            let file = open();
            let call = file.statx();
            drop(file);
            let file = open();
            let read = file.pread(Vec::with_capacity(9), 0);
            drop(file);
            let file = open();
            let shutdown = file.shutdown(Shutdown::Both);
            drop(file);
            assert_eq!(flexsc.stats().posted, posted + 3, "a file was closed");
            call.await.unwrap();
            assert_eq!(read.await.0.unwrap(), 9);
            assert_eq!(error_of(shutdown.await), ENOTSOCK);
        });
    });
}

extern "C" {
    fn dup3(old: c_int, new: c_int, flags: c_int) -> c_int;
    fn fcntl(fd: c_int, command: c_int, argument: c_int) -> c_int;
}

#[test]
fn a_number_that_is_another_files_is_asked_about() {
    with(ASYNCHRONOUS, |flexsc| {
        flexsc.block_on(async {
            let (reader, writer) = adopted_pipe(&flexsc);
            writer.write("x").await.0.unwrap();
            reader.read(vec![0]).await.0.unwrap();
            // A nonblocking pipe gets the number of a blocking one.
            let number = reader.into_fd().unwrap();
            let (other, _writer) = pipe();
            let (set_flags, nonblocking) = (4, 0o4000);
            // SAFETY: Both descriptors are open, and stay open.
            unsafe {
                assert_eq!(fcntl(other.as_raw_fd(), set_flags, nonblocking), 0);
                assert!(dup3(other.as_raw_fd(), number.as_raw_fd(), 0) >= 0);
            }
            let reader = flexsc.adopt(number);
            let call = reader.read(vec![0]).deadline(Duration::from_secs(60));
            assert_eq!(error_of(call.await.0), EAGAIN);
        });
    });
}
