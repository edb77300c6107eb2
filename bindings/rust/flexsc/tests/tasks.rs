// SPDX-License-Identifier: MIT
//! Tasks, wakers on other threads, closures on syscall threads, and panics.

mod common;

use common::{adopted_pipe, with, PollFn, Yield, ALL, ASYNCHRONOUS};
use flexsc::{Builder, IoBufMut, JoinError, Loop};
use std::cell::{Cell, RefCell};
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{mpsc, Arc, Mutex};
use std::task::{Context, Poll, Wake, Waker};
use std::thread;
use std::time::Duration;

fn text(error: &JoinError) -> String {
    error.to_string()
}

fn panic_text(payload: Box<dyn std::any::Any + Send>) -> String {
    text(&JoinError::Panicked(payload))
}

#[test]
fn options_are_those_of_the_library() {
    let all = Builder::new()
        .engine("threads")
        .kernel_cores("0-1023")
        .max_entries(100)
        .max_threads(3)
        .poll(Duration::from_micros(10))
        .poll_adaptive(true)
        .backlog(5);
    let stats = all.build().unwrap().stats();
    // Entries come in whole pages.
    assert_eq!((stats.max_entries, stats.max_threads), (128, 3));
    assert!(all.clone().kernel_cores("none").build().is_err());
    assert!(all.poll(Duration::from_secs(1 << 20)).build().is_err());
}

/// A flag that a thread sets for a task.
#[derive(Default)]
struct Shared {
    value: Option<u32>,
    waker: Option<Waker>,
}

fn receive(shared: Arc<Mutex<Shared>>) -> impl std::future::Future<Output = u32> {
    PollFn(move |context: &mut Context<'_>| {
        let mut shared = shared.lock().unwrap();
        if let Some(value) = shared.value.take() {
            return Poll::Ready(value);
        }
        shared.waker = Some(context.waker().clone());
        Poll::Pending
    })
}

fn send(shared: &Mutex<Shared>, value: u32) {
    let mut shared = shared.lock().unwrap();
    shared.value = Some(value);
    if let Some(waker) = shared.waker.take() {
        waker.wake();
    }
}

#[test]
fn other_threads_wake_a_loop_that_sleeps() {
    with(ALL, |flexsc| {
        let (ask, asked) = mpsc::channel::<Arc<Mutex<Shared>>>();
        let other = thread::spawn(move || {
            for (i, shared) in asked.iter().enumerate() {
                if i % 10 == 0 {
                    thread::sleep(Duration::from_millis(2));
                }
                send(&shared, i as u32);
            }
        });
        flexsc.block_on(async {
            for i in 0..500 {
                let shared = Arc::new(Mutex::new(Shared::default()));
                ask.send(shared.clone()).unwrap();
                assert_eq!(receive(shared).await, i);
            }
        });
        drop(ask);
        other.join().unwrap();
    });
}

#[test]
fn a_waker_may_outlive_its_loop() {
    with(ALL, |flexsc| {
        let shared = Arc::new(Mutex::new(Shared::default()));
        let stop = Arc::new(AtomicBool::new(false));
        drop(flexsc.spawn(receive(shared.clone())));
        flexsc.block_on(Yield(2));
        let waker = shared.lock().unwrap().waker.take().unwrap();
        let other = thread::spawn({
            let (waker, stop) = (waker.clone(), stop.clone());
            move || {
                while !stop.load(Ordering::Relaxed) {
                    waker.wake_by_ref();
                }
            }
        });
        flexsc.block_on(Yield(100));
        drop(flexsc);
        thread::sleep(Duration::from_millis(1));
        stop.store(true, Ordering::Relaxed);
        other.join().unwrap();
        waker.wake();
    });
}

#[test]
fn many_tasks_make_calls() {
    with(ASYNCHRONOUS, |flexsc| {
        let done = Rc::new(Cell::new(0));
        let handle = (*flexsc).clone();
        let tasks: Vec<_> = (0..1000)
            .map(|i| {
                let (handle, done) = (handle.clone(), done.clone());
                flexsc.spawn(async move {
                    let file = handle.open("/proc/self/stat").await.unwrap();
                    for _ in 0..5 {
                        let (n, _) = file.pread(Vec::with_capacity(16), 0).await;
                        assert_eq!(n.unwrap(), 16);
                    }
                    handle.sleep(Duration::from_micros(i)).await.unwrap();
                    done.set(done.get() + 1);
                    file.close().await.unwrap();
                    i
                })
            })
            .collect();
        flexsc.block_on(async {
            for (i, task) in tasks.into_iter().enumerate() {
                assert_eq!(task.await.unwrap(), i as u64);
            }
        });
        assert_eq!(done.get(), 1000);
    });
}

#[test]
fn a_tasks_panic_is_its_handles() {
    with(ALL, |flexsc| {
        flexsc.block_on(async {
            let bad = flexsc.spawn(async { panic!("on purpose: {}", 1) });
            let good = flexsc.spawn(async { 5 });
            let error = bad.await.unwrap_err();
            assert_eq!(text(&error), "panicked: on purpose: 1");
            assert_eq!(good.await.unwrap(), 5);
        });
    });
}

#[test]
fn a_panic_of_the_main_future_leaves_a_loop_that_works() {
    with(ASYNCHRONOUS, |flexsc| {
        let (reader, writer) = adopted_pipe(&flexsc);
        let main = async {
            let _pending = reader.read(vec![0; 8]);
            Yield(2).await;
            panic!("on purpose");
        };
        let end = catch_unwind(AssertUnwindSafe(|| flexsc.block_on(main)));
        assert_eq!(panic_text(end.unwrap_err()), "panicked: on purpose");
        flexsc.block_on(async {
            writer.write("still").await.0.unwrap();
            flexsc.sleep(Duration::from_millis(1)).await.unwrap();
        });
    });
}

#[test]
fn a_closure_runs_elsewhere_and_its_panic_is_its_calls() {
    with(ALL, |flexsc| {
        let here = thread::current().id();
        flexsc.block_on(async {
            let (there, list) = flexsc
                .work(move || (thread::current().id(), vec![1, 2, 3]))
                .await
                .unwrap();
            assert_eq!(list, [1, 2, 3]);
            assert_eq!(there == here, flexsc.engine() == "sync");
            let bad = flexsc.work(|| -> u32 { panic!("on purpose") }).await;
            assert_eq!(text(&bad.unwrap_err()), "panicked: on purpose");
            assert_eq!(flexsc.work(|| 7).await.unwrap(), 7);
        });
    });
}

#[test]
fn closures_that_are_dropped_end_with_the_loop() {
    with(ALL, |flexsc| {
        let (ran, left) = (Arc::new(AtomicUsize::new(0)), Arc::new(()));
        for _ in 0..200 {
            let (ran, left) = (ran.clone(), left.clone());
            drop(flexsc.work(move || {
                ran.fetch_add(1, Ordering::Relaxed);
                drop(left);
            }));
        }
        let slow = flexsc.work({
            let left = left.clone();
            move || {
                thread::sleep(Duration::from_millis(5));
                drop(left);
                panic!("on purpose, unseen");
            }
        });
        flexsc.block_on(Yield(2));
        drop::<flexsc::Call<flexsc::kind::Work<()>>>(slow);
        drop(flexsc);
        assert_eq!(Arc::strong_count(&left), 1);
        assert!(ran.load(Ordering::Relaxed) <= 200);
    });
}

thread_local! {
    static HERE: RefCell<Option<Rc<Loop>>> = const { RefCell::new(None) };
}

#[test]
fn a_closure_of_the_sync_engine_cannot_enter_its_loop() {
    with(&["sync"], |flexsc| {
        let flexsc = Rc::new(flexsc);
        HERE.with(|here| *here.borrow_mut() = Some(flexsc.clone()));
        let within = || HERE.with(|here| here.borrow().clone()).unwrap();
        let work = flexsc.work(move || {
            let flexsc = within();
            let mut call = Box::pin(flexsc.sleep(Duration::ZERO));
            let waker = Waker::from(Arc::new(Nobody));
            let mut context = Context::from_waker(&waker);
            assert!(call.as_mut().poll_is_error(&mut context));
            // Its file must still be closed.
            drop(flexsc.adopt(std::fs::File::open("/dev/null").unwrap()));
            flexsc.block_on(async {});
        });
        let end = flexsc.block_on(work).unwrap_err();
        assert!(text(&end).contains("block_on() inside"), "{end}");
        HERE.with(|here| here.borrow_mut().take());
        flexsc.block_on(flexsc.sleep(Duration::ZERO)).unwrap();
    });
}

/// A waker that does nothing.
struct Nobody;

impl Wake for Nobody {
    fn wake(self: Arc<Self>) {}
}

trait PollIsError {
    fn poll_is_error(self, context: &mut Context<'_>) -> bool;
}

impl<T, F: std::future::Future<Output = std::io::Result<T>>> PollIsError for std::pin::Pin<&mut F> {
    fn poll_is_error(self, context: &mut Context<'_>) -> bool {
        matches!(self.poll(context), Poll::Ready(Err(_)))
    }
}

#[test]
fn block_on_inside_a_task_of_the_same_loop_panics() {
    with(ALL, |flexsc| {
        let flexsc = Rc::new(flexsc);
        let end = flexsc.block_on(flexsc.spawn({
            let flexsc = Rc::downgrade(&flexsc);
            async move { flexsc.upgrade().unwrap().block_on(async {}) }
        }));
        assert!(text(&end.unwrap_err()).contains("block_on() inside"));
        flexsc.block_on(flexsc.sleep(Duration::ZERO)).unwrap();
    });
}

#[test]
fn a_loop_runs_inside_a_task_of_another_one() {
    with(ALL, |flexsc| {
        let other = Loop::new().unwrap();
        flexsc.block_on(async {
            other
                .block_on(other.sleep(Duration::from_millis(1)))
                .unwrap();
            flexsc.sleep(Duration::from_millis(1)).await.unwrap();
        });
    });
}

#[test]
fn an_aborted_task_is_dropped() {
    with(ALL, |flexsc| {
        let kept = Rc::new(());
        let waits = flexsc.spawn({
            let (kept, handle) = (kept.clone(), (*flexsc).clone());
            async move {
                handle.sleep(Duration::MAX).await.unwrap();
                drop(kept);
            }
        });
        let own: Rc<RefCell<Option<flexsc::JoinHandle<()>>>> = Rc::default();
        let ends_itself = flexsc.spawn({
            let (own, kept) = (own.clone(), kept.clone());
            async move {
                own.borrow().as_ref().unwrap().abort();
                Yield(1).await;
                drop(kept);
                unreachable!();
            }
        });
        *own.borrow_mut() = Some(ends_itself);
        flexsc.block_on(async {
            Yield(3).await;
            waits.abort();
            waits.abort();
            assert_eq!(Rc::strong_count(&kept), 1);
            let end = text(&waits.await.unwrap_err());
            assert!(end.starts_with("ended early"), "{end}");
        });
        assert!(own.borrow().as_ref().unwrap().is_finished());
    });
}

/// A buffer whose drop panics.
struct Grumpy(Vec<u8>);

impl Drop for Grumpy {
    fn drop(&mut self) {
        panic!("a grumpy buffer");
    }
}

// SAFETY: The memory belongs to the vector.
unsafe impl IoBufMut for Grumpy {
    fn stable_mut_ptr(&mut self) -> *mut u8 {
        self.0.as_mut_ptr()
    }
    fn room(&self) -> usize {
        self.0.len()
    }
    unsafe fn filled(&mut self, _: usize) {}
}

#[test]
fn a_buffer_that_panics_does_so_in_block_on_or_at_the_loops_end() {
    with(ASYNCHRONOUS, |flexsc| {
        let (reader, _writer) = adopted_pipe(&flexsc);
        drop(reader.read(Grumpy(vec![0; 8])));
        let sleep = || flexsc.block_on(flexsc.sleep(Duration::from_millis(5)));
        // The cancelled read ends during one of the sleeps.
        let end = loop {
            if let Err(end) = catch_unwind(AssertUnwindSafe(sleep)) {
                break end;
            }
        };
        assert_eq!(panic_text(end), "panicked: a grumpy buffer");
        sleep().unwrap();

        let left = reader.read(vec![0; 8]);
        for _ in 0..3 {
            drop(reader.read(Grumpy(vec![0; 8])));
        }
        let handle = (*flexsc).clone();
        let end = catch_unwind(AssertUnwindSafe(|| drop(flexsc)));
        assert_eq!(panic_text(end.unwrap_err()), "panicked: a grumpy buffer");
        // The loop must have ended nevertheless.
        assert!(handle.engine().is_empty());
        drop(left);
    });
}

#[test]
fn a_task_whose_drop_panics_does_not_stop_the_loops_end() {
    with(ALL, |flexsc| {
        let kept = Rc::new(());
        for _ in 0..3 {
            let (grumpy, kept) = (Grumpy(Vec::new()), kept.clone());
            drop(flexsc.spawn(async move {
                PollFn(|_: &mut Context<'_>| Poll::<()>::Pending).await;
                drop(grumpy);
                drop(kept);
            }));
        }
        flexsc.block_on(Yield(2));
        let end = catch_unwind(AssertUnwindSafe(|| drop(flexsc)));
        assert_eq!(panic_text(end.unwrap_err()), "panicked: a grumpy buffer");
        assert_eq!(Rc::strong_count(&kept), 1);
    });
}
