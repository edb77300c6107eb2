// SPDX-License-Identifier: MIT
//! The slots of a loop's calls. Used by the owner only.
//!
//! A slot holds the cb of a call, and room for data that the call's arguments point to.
//! A slot's address never changes, and the slot is freed with the [`Driver`], after the
//! loop was destroyed. So the library may use the cb at any time. A slot is
//!
//! - *free*: in the list of free slots;
//! - *pending*: the library uses it. The future holds the call's other resources;
//! - *abandoned*: pending, but the future was dropped. The slot holds its resources;
//! - *done*: completed, but the future hasn't taken the result yet.
//!
//! The library's callback only puts a slot into the list of completed ones. Foreign
//! code (wakers, buffers' `drop`) runs after the library has returned.

use crate::task::Tasks;
use crate::wake::{Key, Shared};
use flexsc_sys as sys;
use std::cell::{Cell, RefCell};
use std::io;
use std::mem;
use std::os::raw::{c_int, c_void};
use std::panic::{self, AssertUnwindSafe};
use std::ptr::{self, NonNull};
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

/// 256 bytes, for the largest use, a `struct statx`.
pub type Room = [u64; 32];

pub const ECANCELED: i32 = 125;
const EDEADLK: i32 = 35;
pub const ESHUTDOWN: i32 = 108;

/// The resources that a dropped future leaves to its slot.
pub trait Abandoned {
    fn ended(self: Box<Self>, ret: i64, driver: &Rc<Driver>);
}

enum State {
    Free,
    Pending,
    Abandoned(Box<dyn Abandoned>),
    Done,
}

/// The target that a completed call wakes.
enum Wakes {
    Nobody,
    /// A task of this loop; waking it needs no atomic operations.
    Task(Key),
    Other(Waker),
}

#[repr(C)]
pub struct Slot {
    // Must be the first field: the library identifies a slot by its cb.
    cb: sys::flexsc_cb,
    room: Room,
    driver: *const Driver,
    state: State,
    wakes: Wakes,
    /// Next in the list of free or of completed slots.
    next: *mut Slot,
}

pub struct Driver {
    /// Null after the loop was destroyed.
    raw: Cell<*mut sys::flexsc_loop>,
    /// A function of the library is running. With the engine "sync", the function may
    /// run a closure of the program.
    inside: Cell<bool>,
    pub running: Cell<bool>,
    /// The loop is being dropped.
    pub closing: Cell<bool>,
    slots: RefCell<Vec<NonNull<Slot>>>,
    free: Cell<*mut Slot>,
    completed: Cell<*mut Slot>,
    last_completed: Cell<*mut Slot>,
    pub tasks: Tasks,
    pub shared: Arc<Shared>,
}

/// The library's callback. It must not panic.
unsafe extern "C" fn complete(cb: *mut sys::flexsc_cb) {
    let slot = cb.cast::<Slot>();
    // SAFETY: The cb belongs to a slot, and was posted with a pointer to the whole
    // slot. The driver lives while it calls the library. Both are used by the owner
    // only.
    unsafe {
        let driver = &*(*slot).driver;
        (*slot).next = ptr::null_mut();
        if driver.completed.get().is_null() {
            driver.completed.set(slot);
        } else {
            (*driver.last_completed.get()).next = slot;
        }
        driver.last_completed.set(slot);
    }
}

impl Driver {
    pub fn new(options: &sys::flexsc_options) -> io::Result<Rc<Driver>> {
        let mut raw = ptr::null_mut();
        // SAFETY: The caller's options are complete.
        let err = unsafe { sys::flexsc_loop_create(&mut raw, options) };
        if err < 0 {
            return Err(io::Error::from_raw_os_error(-err));
        }
        Ok(Rc::new(Driver {
            raw: Cell::new(raw),
            inside: Cell::new(false),
            running: Cell::new(false),
            closing: Cell::new(false),
            slots: RefCell::default(),
            free: Cell::new(ptr::null_mut()),
            completed: Cell::new(ptr::null_mut()),
            last_completed: Cell::new(ptr::null_mut()),
            tasks: Tasks::default(),
            shared: Shared::new(raw),
        }))
    }

    pub fn raw(&self) -> *mut sys::flexsc_loop {
        self.raw.get()
    }

    /// Call the library. It must not be entered again meanwhile.
    fn enter(&self, function: impl FnOnce(*mut sys::flexsc_loop) -> c_int) -> c_int {
        if self.raw.get().is_null() {
            return -ESHUTDOWN;
        }
        if self.inside.replace(true) {
            return -EDEADLK;
        }
        let ret = function(self.raw.get());
        self.inside.set(false);
        ret
    }

    // Slots.

    fn take_slot(&self) -> *mut Slot {
        let slot = self.free.get();
        if !slot.is_null() {
            // SAFETY: A slot of the free list isn't used by anything else.
            self.free.set(unsafe { (*slot).next });
            return slot;
        }
        let slot = Box::into_raw(Box::new(Slot {
            cb: sys::flexsc_cb {
                callback: Some(complete),
                arg: ptr::null_mut(),
                ret: 0,
                handle: 0,
                flags: 0,
                buffer: 0,
                reserved: 0,
            },
            room: [0; 32],
            driver: self,
            state: State::Free,
            wakes: Wakes::Nobody,
            next: ptr::null_mut(),
        }));
        // SAFETY: A box isn't null.
        let kept = unsafe { NonNull::new_unchecked(slot) };
        self.slots.borrow_mut().push(kept);
        slot
    }

    /// # Safety
    ///
    /// The slot is done, or was never posted, and isn't used any more.
    unsafe fn free_slot(&self, slot: *mut Slot) {
        // SAFETY: The caller upholds the contract.
        unsafe {
            (*slot).state = State::Free;
            (*slot).next = self.free.replace(slot);
        }
    }

    /// Post a call with a slot. Returns a ticket, or an error number.
    ///
    /// # Safety
    ///
    /// `function` posts the cb that it receives, or fails. The call's arguments point
    /// to the room that it receives, or to memory that lives until [`Ticket::take`]
    /// returns the result, or that is passed to [`Ticket::abandon`].
    pub unsafe fn post(
        self: &Rc<Self>,
        function: impl FnOnce(*mut sys::flexsc_loop, *mut sys::flexsc_cb, *mut Room) -> c_int,
    ) -> Result<Ticket, i32> {
        let slot = self.take_slot();
        let err = self.enter(|raw| {
            // SAFETY: The slot was free, so nothing else uses it until it is posted.
            unsafe {
                // In a forked child the loop drops the call, and this stays its result.
                (*slot).cb.ret = -i64::from(ECANCELED);
                (*slot).cb.handle = 0;
                (*slot).state = State::Pending;
                function(raw, slot.cast(), ptr::addr_of_mut!((*slot).room))
            }
        });
        if err < 0 {
            // SAFETY: The slot wasn't posted.
            unsafe { self.free_slot(slot) };
            return Err(-err);
        }
        Ok(Ticket {
            slot,
            driver: self.clone(),
        })
    }

    // Turns.

    /// Number of tasks that are to be polled.
    pub fn runnable(&self) -> usize {
        // SAFETY: Called by the owner: a driver is neither Send nor Sync.
        unsafe { self.shared.collect() }
    }

    /// The next task to poll.
    pub fn next(&self) -> Option<Key> {
        // SAFETY: As above.
        unsafe { self.shared.pop() }
    }

    pub fn submit(&self) {
        // SAFETY: The loop belongs to this thread. This fails only in a forked child,
        // which has nothing to submit.
        self.enter(|raw| unsafe { sys::flexsc_loop_submit(raw) });
    }

    /// Sleep until there is something to collect.
    pub fn wait(&self) {
        // SAFETY: The loop belongs to this thread.
        let err = self.enter(|raw| unsafe { sys::flexsc_loop_wait(raw, sys::FLEXSC_FOREVER) });
        assert!(err >= 0, "flexsc: {}", io::Error::from_raw_os_error(-err));
    }

    /// Start posted calls, and end complete ones.
    pub fn collect(self: &Rc<Self>) {
        // SAFETY: The loop belongs to this thread; its callbacks are complete().
        let err = self.enter(|raw| unsafe { sys::flexsc_loop_dispatch(raw) });
        assert!(err >= 0, "flexsc: {}", io::Error::from_raw_os_error(-err));
        self.end_completed();
    }

    /// Panics of wakers and of buffers are passed on; the function may be called again
    /// after that.
    fn end_completed(self: &Rc<Self>) {
        loop {
            let slot = self.completed.get();
            if slot.is_null() {
                return;
            }
            // SAFETY: A completed slot belongs to the owner, and is in no other list.
            unsafe {
                self.completed.set((*slot).next);
                self.end_slot(slot);
            }
        }
    }

    /// # Safety
    ///
    /// The slot is pending or abandoned, and the library doesn't use it any more.
    unsafe fn end_slot(self: &Rc<Self>, slot: *mut Slot) {
        // SAFETY: The caller upholds the contract. The slot isn't used after foreign code
        // has begun to run.
        unsafe {
            let ret = (*slot).cb.ret;
            match mem::replace(&mut (*slot).state, State::Done) {
                State::Abandoned(left) => {
                    self.free_slot(slot);
                    left.ended(ret, self);
                }
                State::Pending => match mem::replace(&mut (*slot).wakes, Wakes::Nobody) {
                    Wakes::Nobody => {}
                    Wakes::Task(key) => self.tasks.wake(key, &self.shared),
                    Wakes::Other(waker) => waker.wake(),
                },
                State::Free | State::Done => unreachable!("a slot completed twice"),
            }
        }
    }

    // Close.

    /// Drop all tasks, end the loop, and complete every call. After that, the first
    /// panic of a dropped value is resumed.
    pub fn close(self: &Rc<Self>) {
        let mut first = None;
        let mut all = |function: &dyn Fn() -> bool| loop {
            match panic::catch_unwind(AssertUnwindSafe(function)) {
                Ok(true) => {}
                Ok(false) => return,
                Err(payload) => {
                    first.get_or_insert(payload);
                }
            }
        };
        self.closing.set(true);
        all(&|| self.tasks.drop_one());
        self.shared.close();
        // SAFETY: This is the owner's last use of the loop. No function of the loop is
        // running: a closure that the loop runs can't drop the loop, which is borrowed.
        let err = self.enter(|raw| unsafe { sys::flexsc_loop_destroy(raw) });
        if err < 0 {
            // The loop couldn't be destroyed, so leak everything that it may use.
            mem::forget(self.clone());
        }
        self.raw.set(ptr::null_mut());
        let end = || {
            self.end_completed();
            false
        };
        all(&end);
        if err == 0 {
            self.complete_forgotten();
            all(&end);
        }
        if let (Some(payload), false) = (first, std::thread::panicking()) {
            panic::resume_unwind(payload);
        }
    }

    /// In a forked child the library runs no callbacks.
    fn complete_forgotten(&self) {
        for slot in self.slots.borrow().iter() {
            let slot = slot.as_ptr();
            // SAFETY: The loop is destroyed, and the list of completed slots is empty.
            unsafe {
                if matches!((*slot).state, State::Pending | State::Abandoned(_)) {
                    complete(slot.cast());
                }
            }
        }
    }
}

impl Drop for Driver {
    fn drop(&mut self) {
        for slot in self.slots.get_mut() {
            // SAFETY: The loop is destroyed, or its owner has leaked a reference to
            // this driver. No ticket is left.
            drop(unsafe { Box::from_raw(slot.as_ptr()) });
        }
    }
}

/// A future's reference to a pending or completed slot.
pub struct Ticket {
    slot: *mut Slot,
    pub driver: Rc<Driver>,
}

impl Ticket {
    /// Take the result if the call is done; `read` may then read the room.
    ///
    /// After that the ticket must not be used any more.
    pub fn take<T>(
        &self,
        context: &mut Context<'_>,
        read: impl FnOnce(i64, &Room) -> T,
    ) -> Poll<T> {
        // SAFETY: The ticket's slot is used on the owner's thread. No reference to the
        // state or the waker exists while foreign code runs.
        unsafe {
            if let State::Done = (*self.slot).state {
                // If this panics, the slot is leaked.
                let result = read((*self.slot).cb.ret, &(*self.slot).room);
                self.driver.free_slot(self.slot);
                return Poll::Ready(result);
            }
            let wakes = match self.driver.tasks.polled_by(context.waker()) {
                Some(key) => Wakes::Task(key),
                None => Wakes::Other(context.waker().clone()),
            };
            let old = mem::replace(&mut (*self.slot).wakes, wakes);
            drop(old);
        }
        Poll::Pending
    }

    /// Request cancellation.
    pub fn cancel(&self) {
        // SAFETY: The cb is readable; the library ignores one that isn't pending.
        unsafe {
            if let State::Pending | State::Abandoned(_) = (*self.slot).state {
                let cb = self.slot.cast();
                self.driver.enter(|raw| sys::flexsc_loop_cancel(raw, cb));
            }
        }
    }

    /// End the call with -ETIME unless it completes before. Returns 0, or an error
    /// number.
    pub fn deadline(&self, ns: u64) -> c_int {
        let cb = self.slot.cast();
        // SAFETY: As above.
        self.driver
            .enter(|raw| unsafe { sys::flexsc_loop_deadline(raw, cb, ns) })
    }

    /// The future is dropped: the slot keeps its resources until the call's end.
    pub fn abandon(self, left: Box<dyn Abandoned>, cancel: bool) {
        // SAFETY: The ticket's slot is used on the owner's thread.
        unsafe {
            if let State::Done = (*self.slot).state {
                let ret = (*self.slot).cb.ret;
                let wakes = mem::replace(&mut (*self.slot).wakes, Wakes::Nobody);
                self.driver.free_slot(self.slot);
                left.ended(ret, &self.driver);
                drop(wakes);
                return;
            }
            (*self.slot).state = State::Abandoned(left);
            let wakes = mem::replace(&mut (*self.slot).wakes, Wakes::Nobody);
            if cancel {
                self.cancel();
            }
            drop(wakes);
        }
    }
}

/// Convert a pointer to a call's argument.
pub fn address<T: ?Sized>(pointer: *const T) -> u64 {
    pointer.cast::<c_void>() as usize as u64
}
