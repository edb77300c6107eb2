// SPDX-License-Identifier: MIT
//! The slots of a loop's calls. Run by the owner alone.
//!
//! A slot has the cb of a call, and room for what the call's arguments point to. Its
//! address never changes, and it is freed with the [`Driver`], when the loop is gone:
//! so the library may use a cb for as long as it likes. A slot is
//!
//! - *free*, in the list of free ones;
//! - *pending*: the library has it. What the call needs besides is the future's;
//! - *abandoned*: pending, and the future was dropped. The slot has what it owned;
//! - *done*: completed, and the future hasn't taken the result yet.
//!
//! The library's callback only puts a slot into the list of completed ones. What
//! follows runs others' code (wakers, buffers' `drop`), after the library has returned.

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

/// 256 bytes for a `struct statx`, the largest of all.
pub type Room = [u64; 32];

pub const ECANCELED: i32 = 125;
const EDEADLK: i32 = 35;
pub const ESHUTDOWN: i32 = 108;

/// What a dropped future leaves behind.
pub trait Abandoned {
    fn ended(self: Box<Self>, ret: i64, driver: &Rc<Driver>);
}

enum State {
    Free,
    Pending,
    Abandoned(Box<dyn Abandoned>),
    Done,
}

/// Who waits for a pending call.
enum Wakes {
    Nobody,
    /// A task of this loop, which is woken without the atomic operations of a waker.
    Task(Key),
    Other(Waker),
}

#[repr(C)]
pub struct Slot {
    // First: the library knows a slot by its cb.
    cb: sys::flexsc_cb,
    room: Room,
    driver: *const Driver,
    state: State,
    wakes: Wakes,
    /// Of the list of free, or of completed slots.
    next: *mut Slot,
}

pub struct Driver {
    /// Null when the loop is gone.
    raw: Cell<*mut sys::flexsc_loop>,
    /// The library is at work, and may run a closure of the program's ("sync").
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

/// The library's callback. It can't panic.
unsafe extern "C" fn complete(cb: *mut sys::flexsc_cb) {
    let slot = cb.cast::<Slot>();
    // SAFETY: The cb is a slot's, posted with the address of all of the slot; the
    // driver lives while it calls the library. Both are the owner's.
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
        // SAFETY: The caller's options are whole.
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

    /// Call the library, which mustn't be entered again meanwhile.
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
            // SAFETY: A slot of the free list is nobody's.
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
    /// The slot is done, or was never posted, and its user forgets it.
    unsafe fn free_slot(&self, slot: *mut Slot) {
        // SAFETY: The caller's promise.
        unsafe {
            (*slot).state = State::Free;
            (*slot).next = self.free.replace(slot);
        }
    }

    /// Post something by a slot; or the error number.
    ///
    /// # Safety
    ///
    /// `function` posts the cb it is given, or fails. What the call's arguments point
    /// to is the room it is given, or lives until [`Ticket::take`] gives the result, or
    /// is given to [`Ticket::abandon`].
    pub unsafe fn post(
        self: &Rc<Self>,
        function: impl FnOnce(*mut sys::flexsc_loop, *mut sys::flexsc_cb, *mut Room) -> c_int,
    ) -> Result<Ticket, i32> {
        let slot = self.take_slot();
        let err = self.enter(|raw| {
            // SAFETY: The slot was free, so it is ours alone until it is posted.
            unsafe {
                // What is told of a call that a forked child's loop forgets.
                (*slot).cb.ret = -i64::from(ECANCELED);
                (*slot).cb.handle = 0;
                (*slot).state = State::Pending;
                function(raw, slot.cast(), ptr::addr_of_mut!((*slot).room))
            }
        });
        if err < 0 {
            // SAFETY: It wasn't posted.
            unsafe { self.free_slot(slot) };
            return Err(-err);
        }
        Ok(Ticket {
            slot,
            driver: self.clone(),
        })
    }

    // Turns.

    /// How many tasks are to be polled.
    pub fn runnable(&self) -> usize {
        // SAFETY: A driver is the owner's: it is neither Send nor Sync.
        unsafe { self.shared.collect() }
    }

    /// The next of them.
    pub fn next(&self) -> Option<Key> {
        // SAFETY: As above.
        unsafe { self.shared.pop() }
    }

    pub fn submit(&self) {
        // SAFETY: A loop, of this thread. Fails in a forked child only, where
        // nothing is to be submitted.
        self.enter(|raw| unsafe { sys::flexsc_loop_submit(raw) });
    }

    /// Sleep until there is something to collect.
    pub fn wait(&self) {
        // SAFETY: A loop, of this thread.
        let err = self.enter(|raw| unsafe { sys::flexsc_loop_wait(raw, sys::FLEXSC_FOREVER) });
        assert!(err >= 0, "flexsc: {}", io::Error::from_raw_os_error(-err));
    }

    /// Start what was posted, and end what is complete.
    pub fn collect(self: &Rc<Self>) {
        // SAFETY: A loop, of this thread; its callbacks are complete().
        let err = self.enter(|raw| unsafe { sys::flexsc_loop_dispatch(raw) });
        assert!(err >= 0, "flexsc: {}", io::Error::from_raw_os_error(-err));
        self.end_completed();
    }

    /// Panics with what wakers and buffers panic with; may then be called again.
    fn end_completed(self: &Rc<Self>) {
        loop {
            let slot = self.completed.get();
            if slot.is_null() {
                return;
            }
            // SAFETY: A completed slot is the owner's, and in no other list.
            unsafe {
                self.completed.set((*slot).next);
                self.end_slot(slot);
            }
        }
    }

    /// # Safety
    ///
    /// The slot is pending or abandoned, and the library has done with it.
    unsafe fn end_slot(self: &Rc<Self>, slot: *mut Slot) {
        // SAFETY: The caller's promise. The slot isn't used after others' code has
        // begun to run.
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

    // The end.

    /// Drop all tasks, end the loop, and give every call its end. The first panic of
    /// what was dropped goes on afterwards.
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
        // SAFETY: The owner's last use of the loop; nobody is inside it, because a
        // closure that it runs can't drop the loop, which is borrowed.
        let err = self.enter(|raw| unsafe { sys::flexsc_loop_destroy(raw) });
        if err < 0 {
            // It goes on, so all that it may use has to stay.
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
            // SAFETY: The loop is gone, and the list of completed slots empty.
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
            // SAFETY: The loop is gone: its owner closed it, or else has leaked a
            // reference to this driver. The last ticket is gone, too.
            drop(unsafe { Box::from_raw(slot.as_ptr()) });
        }
    }
}

/// A pending or completed slot, as its future knows it.
pub struct Ticket {
    slot: *mut Slot,
    pub driver: Rc<Driver>,
}

impl Ticket {
    /// The result, if the call is done; then `read` may look at the room.
    ///
    /// The ticket isn't to be used any more after that.
    pub fn take<T>(
        &self,
        context: &mut Context<'_>,
        read: impl FnOnce(i64, &Room) -> T,
    ) -> Poll<T> {
        // SAFETY: The ticket's slot, on the owner's thread. No reference to the state
        // or the waker lives while others' code runs.
        unsafe {
            if let State::Done = (*self.slot).state {
                // Should this panic, the slot is never used again.
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

    /// Ask that the call ends early.
    pub fn cancel(&self) {
        // SAFETY: The cb is readable; one that isn't pending is refused.
        unsafe {
            if let State::Pending | State::Abandoned(_) = (*self.slot).state {
                let cb = self.slot.cast();
                self.driver.enter(|raw| sys::flexsc_loop_cancel(raw, cb));
            }
        }
    }

    /// End the call by -ETIME unless it completes before. 0, or an error number.
    pub fn deadline(&self, ns: u64) -> c_int {
        let cb = self.slot.cast();
        // SAFETY: As above.
        self.driver
            .enter(|raw| unsafe { sys::flexsc_loop_deadline(raw, cb, ns) })
    }

    /// The future is dropped: the slot keeps what it owned until the call's end.
    pub fn abandon(self, left: Box<dyn Abandoned>, cancel: bool) {
        // SAFETY: The ticket's slot, on the owner's thread.
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

/// An argument of a call.
pub fn address<T: ?Sized>(pointer: *const T) -> u64 {
    pointer.cast::<c_void>() as usize as u64
}
