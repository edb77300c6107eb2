// SPDX-License-Identifier: MIT
//! Memory that the kernel may read or fill while a call is pending.

use std::rc::Rc;
use std::sync::Arc;

/// A buffer that the kernel may read.
///
/// # Safety
///
/// The memory that `stable_ptr` and `bytes` name is initialised, stays where it is and
/// isn't written to while the value lives, also if the value is moved or forgotten:
/// only dropping it, or a use of it, may end that.
pub unsafe trait IoBuf: 'static {
    /// Where the bytes begin.
    fn stable_ptr(&self) -> *const u8;
    /// How many there are.
    fn bytes(&self) -> usize;
}

/// A buffer that the kernel may fill.
///
/// # Safety
///
/// The memory that `stable_mut_ptr` and `room` name may be written to by this value
/// alone, and stays where it is while the value lives, as for [`IoBuf`].
pub unsafe trait IoBufMut: 'static {
    /// Where the room begins.
    fn stable_mut_ptr(&mut self) -> *mut u8;
    /// How many bytes fit.
    fn room(&self) -> usize;
    /// The kernel has filled the first `n` bytes.
    ///
    /// # Safety
    ///
    /// They are initialised, and `n` isn't above `room`.
    unsafe fn filled(&mut self, n: usize);
}

// SAFETY: A vector's memory is its own, on the heap.
unsafe impl IoBuf for Vec<u8> {
    fn stable_ptr(&self) -> *const u8 {
        self.as_ptr()
    }
    fn bytes(&self) -> usize {
        self.len()
    }
}

/// Filled from its beginning up to its capacity; its length is then what was read.
// SAFETY: As above.
unsafe impl IoBufMut for Vec<u8> {
    fn stable_mut_ptr(&mut self) -> *mut u8 {
        self.as_mut_ptr()
    }
    fn room(&self) -> usize {
        self.capacity()
    }
    unsafe fn filled(&mut self, n: usize) {
        // SAFETY: The caller's promise.
        unsafe { self.set_len(n) }
    }
}

// SAFETY: A string's memory is its own, on the heap.
unsafe impl IoBuf for String {
    fn stable_ptr(&self) -> *const u8 {
        self.as_ptr()
    }
    fn bytes(&self) -> usize {
        self.len()
    }
}

// SAFETY: Nobody writes there, ever.
unsafe impl IoBuf for &'static [u8] {
    fn stable_ptr(&self) -> *const u8 {
        self.as_ptr()
    }
    fn bytes(&self) -> usize {
        self.len()
    }
}

// SAFETY: Nobody writes there, ever.
unsafe impl IoBuf for &'static str {
    fn stable_ptr(&self) -> *const u8 {
        self.as_ptr()
    }
    fn bytes(&self) -> usize {
        self.len()
    }
}

// SAFETY: What is shared is on the heap, and written to by a sole owner only.
unsafe impl IoBuf for Rc<[u8]> {
    fn stable_ptr(&self) -> *const u8 {
        self.as_ptr()
    }
    fn bytes(&self) -> usize {
        self.len()
    }
}

// SAFETY: As above.
unsafe impl IoBuf for Arc<[u8]> {
    fn stable_ptr(&self) -> *const u8 {
        self.as_ptr()
    }
    fn bytes(&self) -> usize {
        self.len()
    }
}
