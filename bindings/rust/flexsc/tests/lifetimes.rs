// SPDX-License-Identifier: MIT
//! Memory that is dropped while the kernel uses it is kept until the kernel is done
//! with it.

mod common;

use common::{adopted_pipe, descriptors_of, pipe, with, Folder, PollFn, Yield, ALL, ASYNCHRONOUS};
use flexsc::{Builder, IoBuf, IoBufMut, Loop};
use std::cell::Cell;
use std::future::Future;
use std::io::{ErrorKind, Read as _, Write as _};
use std::net::TcpListener;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};
use std::time::Duration;
use std::{fs, mem, thread};

/// A buffer type that counts its live instances.
struct Counted {
    bytes: Vec<u8>,
    alive: Rc<Cell<usize>>,
}

impl Counted {
    fn new(alive: &Rc<Cell<usize>>) -> Counted {
        alive.set(alive.get() + 1);
        Counted {
            bytes: vec![b'.'; 64],
            alive: alive.clone(),
        }
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.alive.set(self.alive.get() - 1);
    }
}

// SAFETY: The memory belongs to the vector.
unsafe impl IoBufMut for Counted {
    fn stable_mut_ptr(&mut self) -> *mut u8 {
        self.bytes.as_mut_ptr()
    }
    fn room(&self) -> usize {
        self.bytes.len()
    }
    unsafe fn filled(&mut self, _: usize) {}
}

// SAFETY: The memory belongs to the vector.
unsafe impl IoBuf for Counted {
    fn stable_ptr(&self) -> *const u8 {
        self.bytes.as_ptr()
    }
    fn bytes(&self) -> usize {
        self.bytes.len()
    }
}

/// Poll a future once, and expect it to be pending.
struct Once<F>(F);

impl<F: Future + Unpin> Future for Once<&mut F> {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        assert!(Pin::new(&mut *self.0).poll(context).is_pending());
        Poll::Ready(())
    }
}

#[test]
fn the_buffer_of_a_dropped_read_lives_until_the_read_has_ended() {
    with(ASYNCHRONOUS, |flexsc| {
        let alive = Rc::new(Cell::new(0));
        flexsc.block_on(async {
            let (reader, writer) = adopted_pipe(&flexsc);
            let mut read = reader.read(Counted::new(&alive));
            Once(&mut read).await;
            // By now the kernel uses the buffer.
            flexsc.sleep(Duration::from_millis(2)).await.unwrap();
            drop(read);
            assert_eq!(alive.get(), 1, "freed before the call's end");
            let others: Vec<Vec<u8>> = (0..100).map(|_| vec![b'o'; 64]).collect();
            writer.write(vec![b'!'; 64]).await.0.unwrap();
            while alive.get() != 0 {
                flexsc.sleep(Duration::from_micros(100)).await.unwrap();
            }
            assert!(others.iter().flatten().all(|byte| *byte == b'o'));
            // Data that the cancelled read didn't consume is left for the next read.
            let next = reader.read(Vec::with_capacity(64));
            let (n, text) = next.deadline(Duration::from_millis(5)).await;
            assert!(n.map_or(true, |_| text == vec![b'!'; 64]));
        });
    });
}

#[test]
fn dropping_a_loop_ends_its_pending_calls() {
    with(ASYNCHRONOUS, |flexsc| {
        let alive = Rc::new(Cell::new(0));
        let (reader, _writer) = adopted_pipe(&flexsc);
        let kept = reader.read(Counted::new(&alive));
        let mut dropped = Vec::new();
        for _ in 0..1000 {
            dropped.push(reader.read(Counted::new(&alive)));
        }
        flexsc
            .block_on(flexsc.sleep(Duration::from_millis(2)))
            .unwrap();
        drop(dropped);
        let handle = (*flexsc).clone();
        drop(flexsc);
        assert_eq!(alive.get(), 1, "all but the one that is kept");
        // The future that is left still returns its call's result, on any executor.
        let other = Loop::new().unwrap();
        let (n, buffer) = other.block_on(kept);
        assert!(n.is_err());
        drop(buffer);
        assert_eq!(alive.get(), 0);
        // After that no more calls are accepted.
        let (n, _) = other.block_on(reader.read(Counted::new(&alive)));
        assert_eq!(n.unwrap_err().raw_os_error(), Some(108));
        other.block_on(handle.sleep(Duration::ZERO)).unwrap_err();
        assert!(other.block_on(handle.spawn(async {})).is_err());
        assert!(handle.engine().is_empty());
        other.block_on(reader.close()).unwrap();
    });
}

#[test]
fn dropping_a_loop_drops_its_tasks() {
    with(ALL, |flexsc| {
        let alive = Rc::new(Cell::new(0));
        let handle = (*flexsc).clone();
        let mut joins = Vec::new();
        for _ in 0..100 {
            let buffer = Counted::new(&alive);
            let handle = handle.clone();
            joins.push(flexsc.spawn(async move {
                handle.sleep(Duration::MAX).await.unwrap();
                drop(buffer);
            }));
        }
        flexsc.block_on(Yield(2));
        assert_eq!(alive.get(), 100);
        drop(flexsc);
        assert_eq!(alive.get(), 0);
        assert!(joins.iter().all(|join| join.is_finished()));
    });
}

#[test]
fn descriptors_are_closed() {
    let folder = Folder::new();
    let path = folder.join("file");
    fs::write(&path, "").unwrap();
    with(ALL, |flexsc| {
        flexsc.block_on(async {
            for _ in 0..50 {
                let file = flexsc.open(&path).await.unwrap();
                drop(file);
                drop(flexsc.open(&path));
                let file = flexsc.open(&path).await.unwrap();
                file.close().await.unwrap();
                // This future is never polled.
                drop(flexsc.open(&path).await.unwrap().close());
            }
        });
        // A file and a future that are dropped while the loop doesn't run.
        let file = flexsc.block_on(flexsc.open(&path)).unwrap();
        drop(file);
        drop(flexsc.open(&path));
        // Dropped while the loop ends, and after that.
        let handle = (*flexsc).clone();
        let task = path.clone();
        let join = flexsc.spawn(async move {
            let _kept = handle.open(&task).await.unwrap();
            handle.sleep(Duration::MAX).await.unwrap();
        });
        let left = flexsc.block_on(flexsc.open(&path)).unwrap();
        let reads: Vec<_> = (0..9).map(|_| left.read(vec![0])).collect();
        drop(flexsc);
        assert!(join.is_finished());
        drop(reads);
        assert_eq!(descriptors_of(&path), 1);
        drop(left);
        assert_eq!(descriptors_of(&path), 0);
    });
}

#[test]
fn closes_that_a_loops_end_overtakes_happen() {
    let folder = Folder::new();
    let path = folder.join("file");
    fs::write(&path, "").unwrap();
    with(ALL, |flexsc| {
        let files: Vec<_> = (0..300)
            .map(|_| flexsc.adopt(fs::File::open(&path).unwrap()))
            .collect();
        assert_eq!(descriptors_of(&path), 300);
        flexsc.block_on(async { drop(files) });
        drop(flexsc);
        assert_eq!(descriptors_of(&path), 0);
    });
}

fn is_closed(client: &mut std::net::TcpStream) -> bool {
    match client.read(&mut [0]) {
        Ok(n) => {
            assert_eq!(n, 0);
            true
        }
        Err(error) => {
            // A read with a time limit may be interrupted.
            let kind = error.kind();
            assert!(kind == ErrorKind::WouldBlock || kind == ErrorKind::Interrupted);
            false
        }
    }
}

#[test]
fn a_connection_for_a_dropped_accept_is_closed() {
    with(ASYNCHRONOUS, |flexsc| {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        flexsc.block_on(async {
            let listener = flexsc.adopt(listener);
            for round in 0..50 {
                let accept = listener.accept();
                if round % 3 > 0 {
                    // By now the closure has started.
                    flexsc.sleep(Duration::from_millis(1)).await.unwrap();
                }
                let mut client = std::net::TcpStream::connect(address).unwrap();
                if round % 3 > 1 {
                    // By now a connection has been accepted, but not requested.
                    flexsc.sleep(Duration::from_millis(2)).await.unwrap();
                }
                drop(accept);
                // The connection may not have been accepted yet; in any case it must be
                // closed.
                let patience = Duration::from_millis(20);
                client.set_read_timeout(Some(patience)).unwrap();
                let mut tries = 0;
                while !is_closed(&mut client) {
                    tries += 1;
                    assert!(tries < 250);
                    drop(listener.accept().deadline(patience).await);
                    flexsc.sleep(Duration::from_millis(1)).await.unwrap();
                }
            }
        });
    });
}

#[test]
fn a_pipes_reader_sees_the_end_after_block_on() {
    with(ALL, |flexsc| {
        let (reader, writer) = pipe();
        let writer = flexsc.adopt(writer);
        flexsc.block_on(async { drop(writer) });
        let mut text = String::new();
        fs::File::from(reader).read_to_string(&mut text).unwrap();
    });
}

#[test]
fn a_loop_that_is_forgotten_hurts_nobody() {
    with(ASYNCHRONOUS, |flexsc| {
        let (reader, writer) = pipe();
        let (waker, wake) = std::sync::mpsc::channel();
        let alive = thread::spawn({
            let engine = flexsc.engine();
            move || {
                let flexsc = Builder::new().engine(&engine).build().unwrap();
                let reader = flexsc.adopt(reader);
                let mut read = reader.read(vec![0; 64]);
                flexsc.block_on(Once(&mut read));
                let mut sent = false;
                flexsc.spawn(PollFn(move |context: &mut Context<'_>| {
                    if !mem::replace(&mut sent, true) {
                        waker.send(context.waker().clone()).unwrap();
                    }
                    Poll::<()>::Pending
                }));
                flexsc.block_on(Yield(3));
                mem::forget(read);
                mem::forget(flexsc);
                mem::forget(reader);
            }
        });
        let waker = wake.recv().unwrap();
        alive.join().unwrap();
        // The kernel may still fill the buffer, and the waker may wake a loop without a
        // thread.
        fs::File::from(writer).write_all(b"late").unwrap();
        waker.wake();
    });
}

#[test]
fn a_forgotten_call_is_only_leaked() {
    with(ASYNCHRONOUS, |flexsc| {
        flexsc.block_on(async {
            let (reader, writer) = adopted_pipe(&flexsc);
            mem::forget(reader.read(vec![0; 64]));
            writer.write("taken").await.0.unwrap();
            flexsc.sleep(Duration::from_millis(1)).await.unwrap();
        });
    });
}
