// SPDX-License-Identifier: MIT
//! Tasks: futures that run concurrently with the future of block_on(). Used by the
//! owner only.

use crate::driver::{Driver, ECANCELED};
use crate::wake::{Key, Shared, TaskWake};
use std::any::Any;
use std::cell::{Cell, RefCell};
use std::fmt;
use std::future::Future;
use std::io;
use std::panic::{self, AssertUnwindSafe};
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

type Body = Pin<Box<dyn Future<Output = ()>>>;

/// The part that is taken out while the task is polled.
struct Task {
    body: Body,
    waker: Waker,
    wake: Arc<TaskWake>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    Free,
    /// The entry holds the task.
    Waiting,
    Polled,
    /// Aborted while it is being polled, so it ends after that.
    Aborted,
}

struct Entry {
    generation: u64,
    /// wake() has put it into the queue.
    queued: bool,
    place: Place,
    task: Option<Task>,
}

#[derive(Default)]
struct Slab {
    entries: Vec<Entry>,
    free: Vec<usize>,
}

#[derive(Default)]
pub struct Tasks {
    /// Not borrowed while foreign code runs.
    slab: RefCell<Slab>,
    /// The task that is being polled, and its waker.
    polled: Cell<Option<(Key, *const Waker)>>,
}

/// Marks a task as being polled until this is dropped, so that its waker is valid until
/// then.
struct Polling<'a>(&'a Tasks);

impl<'a> Polling<'a> {
    fn new(tasks: &'a Tasks, key: Key, waker: &'a Waker) -> Polling<'a> {
        tasks.polled.set(Some((key, waker)));
        Polling(tasks)
    }
}

impl Drop for Polling<'_> {
    fn drop(&mut self) {
        self.0.polled.set(None);
    }
}

impl Slab {
    fn of(&mut self, key: Key) -> Option<&mut Entry> {
        self.entries
            .get_mut(key.index)
            .filter(|entry| entry.generation == key.generation)
    }

    fn remove(&mut self, key: Key) -> Option<Task> {
        let entry = &mut self.entries[key.index];
        entry.generation += 1;
        entry.queued = false;
        entry.place = Place::Free;
        self.free.push(key.index);
        entry.task.take()
    }
}

impl Tasks {
    fn add(&self, body: Body, shared: &Arc<Shared>) -> Key {
        let slab = &mut *self.slab.borrow_mut();
        let index = slab.free.pop().unwrap_or_else(|| {
            slab.entries.push(Entry {
                generation: 0,
                queued: false,
                place: Place::Free,
                task: None,
            });
            slab.entries.len() - 1
        });
        let entry = &mut slab.entries[index];
        let key = Key {
            index,
            generation: entry.generation,
        };
        let (waker, wake) = TaskWake::new(key, shared);
        entry.place = Place::Waiting;
        entry.task = Some(Task { body, waker, wake });
        key
    }

    /// Poll a task, unless it has ended.
    pub fn poll(&self, key: Key) {
        let mut task = match self.take(key) {
            Some(task) => task,
            None => return,
        };
        task.wake.unqueue();
        let polling = Polling::new(self, key, &task.waker);
        let mut context = Context::from_waker(&task.waker);
        // The body catches its panics itself.
        let over = task.body.as_mut().poll(&mut context).is_ready();
        drop(polling);
        let slab = &mut *self.slab.borrow_mut();
        let entry = &mut slab.entries[key.index];
        if !over && entry.place == Place::Polled {
            entry.place = Place::Waiting;
            entry.task = Some(task);
        } else {
            slab.remove(key);
        }
        // A task that has ended is dropped after the borrow ends.
    }

    fn take(&self, key: Key) -> Option<Task> {
        let slab = &mut *self.slab.borrow_mut();
        let entry = slab.of(key)?;
        entry.queued = false;
        let task = entry.task.take()?;
        entry.place = Place::Polled;
        Some(task)
    }

    /// Return the task that is being polled, if this is its waker.
    pub fn polled_by(&self, waker: &Waker) -> Option<Key> {
        let (key, polled) = self.polled.get()?;
        // SAFETY: The pointer is valid while it is set: see Polling.
        let same = unsafe { (*polled).will_wake(waker) };
        same.then_some(key)
    }

    /// Wake a task at a call's end. If its waker wakes it too, the task is polled once
    /// more, which is harmless.
    pub fn wake(&self, key: Key, shared: &Shared) {
        let slab = &mut *self.slab.borrow_mut();
        if let Some(entry) = slab.of(key).filter(|entry| !entry.queued) {
            entry.queued = true;
            // SAFETY: Tasks are used by the owner only.
            unsafe { shared.push_own(key) };
        }
    }

    fn abort(&self, key: Key) {
        let removed = {
            let slab = &mut *self.slab.borrow_mut();
            match slab.of(key) {
                Some(entry) if entry.place == Place::Polled => {
                    entry.place = Place::Aborted;
                    None
                }
                Some(entry) if entry.place == Place::Waiting => slab.remove(key),
                _ => None,
            }
        };
        drop(removed);
    }

    /// Drop one task, because the loop ends. False: none is left.
    pub fn drop_one(&self) -> bool {
        let removed = {
            let slab = &mut *self.slab.borrow_mut();
            let waits = |entry: &Entry| entry.place == Place::Waiting;
            match slab.entries.iter().rposition(waits) {
                Some(index) => {
                    let generation = slab.entries[index].generation;
                    slab.entries.truncate(index + 1);
                    slab.remove(Key { index, generation })
                }
                None => return false,
            }
        };
        drop(removed);
        true
    }
}

/// The reason why a task or a closure has no result.
pub enum JoinError {
    /// It panicked with this.
    Panicked(Box<dyn Any + Send>),
    /// It ended early, or never started; with `ECANCELED` if that was requested.
    Ended(io::Error),
}

impl fmt::Debug for JoinError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Display for JoinError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let payload = match self {
            JoinError::Ended(error) => return write!(f, "ended early: {error}"),
            JoinError::Panicked(payload) => payload,
        };
        let text = payload.downcast_ref::<&str>().copied();
        let text = text.or_else(|| payload.downcast_ref::<String>().map(String::as_str));
        write!(f, "panicked: {}", text.unwrap_or("without a text"))
    }
}

impl std::error::Error for JoinError {}

impl JoinError {
    pub(crate) fn ended(errno: i32) -> JoinError {
        JoinError::Ended(io::Error::from_raw_os_error(errno))
    }
}

/// State shared by a task and its handle.
struct Join<T> {
    result: Option<Result<T, JoinError>>,
    waker: Option<Waker>,
    over: bool,
}

type Joined<T> = Rc<RefCell<Join<T>>>;

fn finish<T>(join: &Joined<T>, result: Result<T, JoinError>) {
    let waker = {
        let mut join = join.borrow_mut();
        join.over = true;
        join.result = Some(result);
        join.waker.take()
    };
    if let Some(waker) = waker {
        waker.wake();
    }
}

/// A task's body, which passes the future's output to the handle.
struct Spawned<F: Future> {
    // None after it has ended or panicked.
    future: Option<F>,
    join: Joined<F::Output>,
}

impl<F: Future> Future for Spawned<F> {
    type Output = ();

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        // SAFETY: The future is pinned with self: it is dropped in place, by
        // Pin::set(), and never moved. No other field of self is pinned.
        let this = unsafe { self.get_unchecked_mut() };
        // SAFETY: As above.
        let mut place = unsafe { Pin::new_unchecked(&mut this.future) };
        let polled = panic::catch_unwind(AssertUnwindSafe(|| {
            let future = place
                .as_mut()
                .as_pin_mut()
                .expect("a task was polled after its end");
            let output = future.poll(context);
            if output.is_ready() {
                place.set(None);
            }
            output
        }));
        let result = match polled {
            Ok(Poll::Pending) => return Poll::Pending,
            Ok(Poll::Ready(output)) => Ok(output),
            Err(payload) => Err(JoinError::Panicked(payload)),
        };
        finish(&this.join, result);
        Poll::Ready(())
    }
}

impl<F: Future> Drop for Spawned<F> {
    fn drop(&mut self) {
        if !self.join.borrow().over {
            finish(&self.join, Err(JoinError::ended(ECANCELED)));
        }
    }
}

/// The end of a task, as a future. Dropping it lets the task go on.
pub struct JoinHandle<T> {
    join: Joined<T>,
    driver: Rc<Driver>,
    key: Option<Key>,
}

impl<T> JoinHandle<T> {
    /// Drop the task's future, which cancels its calls; the handle returns `ECANCELED`.
    /// A task that has ended, or that ends in the current poll, isn't affected.
    pub fn abort(&self) {
        if let Some(key) = self.key {
            self.driver.tasks.abort(key);
        }
    }

    /// Has the task ended?
    pub fn is_finished(&self) -> bool {
        self.join.borrow().over
    }
}

impl<T> Future for JoinHandle<T> {
    type Output = Result<T, JoinError>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let waker = context.waker().clone();
        let old = {
            let mut join = self.join.borrow_mut();
            if join.over {
                let result = join.result.take();
                return Poll::Ready(result.expect("a handle was polled after its end"));
            }
            join.waker.replace(waker)
        };
        drop(old);
        Poll::Pending
    }
}

pub fn spawn<F>(driver: &Rc<Driver>, future: F) -> JoinHandle<F::Output>
where
    F: Future + 'static,
    F::Output: 'static,
{
    let join = Rc::new(RefCell::new(Join {
        result: None,
        waker: None,
        over: false,
    }));
    let body = Box::pin(Spawned {
        future: Some(future),
        join: join.clone(),
    });
    // A loop that is being closed accepts no tasks.
    let key = match driver.closing.get() {
        true => None,
        false => Some(driver.tasks.add(body, &driver.shared)),
    };
    JoinHandle {
        join,
        driver: driver.clone(),
        key,
    }
}
