// SPDX-License-Identifier: MIT
//! The part of a loop that any thread may use: the queues of tasks that are to be
//! polled.
//!
//! The owner's own wakes go to a queue without a lock. Other threads' wakes go to a
//! queue with a lock, under which they wake the loop. The owner takes the lock before
//! it destroys the loop.

use flexsc_sys as sys;
use std::cell::{Cell, UnsafeCell};
use std::collections::VecDeque;
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Wake, Waker};

/// Identifies a task. Its index is reused with another generation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Key {
    pub index: usize,
    pub generation: u64,
}

struct Others {
    /// Null once the loop is being destroyed.
    raw: *mut sys::flexsc_loop,
    queue: Vec<Key>,
}

pub struct Shared {
    owner: u64,
    own: UnsafeCell<VecDeque<Key>>,
    others: Mutex<Others>,
    /// The queue of other threads' wakes isn't empty.
    told: AtomicBool,
}

// SAFETY: "own" is used by the owner's thread only, which thread_number() identifies.
// "raw" is used under the lock, for functions that any thread may call.
unsafe impl Send for Shared {}
// SAFETY: As above.
unsafe impl Sync for Shared {}

/// A number that is unique to the calling thread.
fn thread_number() -> u64 {
    static LAST: AtomicU64 = AtomicU64::new(0);
    thread_local!(static NUMBER: Cell<u64> = const { Cell::new(0) });
    NUMBER.with(|number| {
        if number.get() == 0 {
            number.set(LAST.fetch_add(1, Ordering::Relaxed) + 1);
        }
        number.get()
    })
}

impl Shared {
    pub fn new(raw: *mut sys::flexsc_loop) -> Arc<Shared> {
        Arc::new(Shared {
            owner: thread_number(),
            own: UnsafeCell::default(),
            others: Mutex::new(Others {
                raw,
                queue: Vec::new(),
            }),
            told: AtomicBool::new(false),
        })
    }

    fn others(&self) -> MutexGuard<'_, Others> {
        self.others.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn push(&self, key: Key) {
        if thread_number() == self.owner {
            // SAFETY: This is the owner's thread.
            unsafe { self.push_own(key) };
            return;
        }
        let mut others = self.others();
        if others.raw.is_null() {
            return;
        }
        others.queue.push(key);
        self.told.store(true, Ordering::Release);
        if others.queue.len() == 1 {
            // SAFETY: The loop can't be destroyed while the lock is held: see close().
            unsafe { sys::flexsc_loop_wake(others.raw, ptr::null_mut()) };
        }
    }

    /// # Safety
    ///
    /// Must be called by the owner.
    pub unsafe fn push_own(&self, key: Key) {
        // SAFETY: The caller upholds the contract, and no foreign code is called here.
        unsafe { (*self.own.get()).push_back(key) };
    }

    /// The next task to poll.
    ///
    /// # Safety
    ///
    /// Must be called by the owner.
    pub unsafe fn pop(&self) -> Option<Key> {
        // SAFETY: As in push_own().
        unsafe { (*self.own.get()).pop_front() }
    }

    /// Number of tasks to poll, including those that other threads woke.
    ///
    /// # Safety
    ///
    /// Must be called by the owner.
    pub unsafe fn collect(&self) -> usize {
        debug_assert_eq!(thread_number(), self.owner);
        // SAFETY: As in push_own().
        let own = unsafe { &mut *self.own.get() };
        if self.told.load(Ordering::Relaxed) {
            let mut others = self.others();
            self.told.store(false, Ordering::Relaxed);
            own.extend(others.queue.drain(..));
        }
        own.len()
    }

    /// Called before the loop is destroyed: no thread can wake it any more.
    pub fn close(&self) {
        let mut others = self.others();
        others.raw = ptr::null_mut();
        others.queue = Vec::new();
    }
}

/// The target of a task's waker.
pub struct TaskWake {
    key: Key,
    /// The task is in a queue.
    queued: AtomicBool,
    shared: Arc<Shared>,
}

impl TaskWake {
    /// Make a waker and the task's side of it; the task is queued.
    pub fn new(key: Key, shared: &Arc<Shared>) -> (Waker, Arc<TaskWake>) {
        let wake = Arc::new(TaskWake {
            key,
            queued: AtomicBool::new(true),
            shared: shared.clone(),
        });
        shared.push(key);
        (Waker::from(wake.clone()), wake)
    }

    /// The task has left the queue and will be polled. If a waker found the task
    /// queued, the poll sees what was written before that wake.
    pub fn unqueue(&self) {
        if self.queued.load(Ordering::Relaxed) {
            self.queued.swap(false, Ordering::Acquire);
        }
    }
}

impl Wake for TaskWake {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        // Pairs with unqueue().
        if !self.queued.swap(true, Ordering::Release) {
            self.shared.push(self.key);
        }
    }
}
