// SPDX-License-Identifier: MIT
//! Memory that the kernel may read or fill while a call is pending.

use std::rc::Rc;
use std::sync::Arc;

/// A buffer that the kernel may read.
///
/// # Safety
///
/// The memory that `stable_ptr` and `bytes` describe must be initialised, must not move
/// and must not be written to while the value lives, even if the value is moved or
/// forgotten. Only dropping the value, or a method call on it, may end that.
pub unsafe trait IoBuf: 'static {
    /// Address of the first byte.
    fn stable_ptr(&self) -> *const u8;
    /// Number of bytes.
    fn bytes(&self) -> usize;
}

/// A buffer that the kernel may fill.
///
/// # Safety
///
/// The memory that `stable_mut_ptr` and `room` describe must be writable through this
/// value only, and must not move while the value lives, as for [`IoBuf`].
pub unsafe trait IoBufMut: 'static {
    /// Address of the room.
    fn stable_mut_ptr(&mut self) -> *mut u8;
    /// How many bytes fit.
    fn room(&self) -> usize;
    /// Called after the kernel has filled the first `n` bytes.
    ///
    /// # Safety
    ///
    /// These bytes are initialised, and `n` is at most `room`.
    unsafe fn filled(&mut self, n: usize);
}

// SAFETY: A vector owns its memory, which is on the heap.
unsafe impl IoBuf for Vec<u8> {
    fn stable_ptr(&self) -> *const u8 {
        self.as_ptr()
    }
    fn bytes(&self) -> usize {
        self.len()
    }
}

/// The vector is filled from its beginning, up to its capacity. Then its length is the
/// number of bytes read.
// SAFETY: As above.
unsafe impl IoBufMut for Vec<u8> {
    fn stable_mut_ptr(&mut self) -> *mut u8 {
        self.as_mut_ptr()
    }
    fn room(&self) -> usize {
        self.capacity()
    }
    unsafe fn filled(&mut self, n: usize) {
        // SAFETY: The caller upholds the contract.
        unsafe { self.set_len(n) }
    }
}

// SAFETY: A string owns its memory, which is on the heap.
unsafe impl IoBuf for String {
    fn stable_ptr(&self) -> *const u8 {
        self.as_ptr()
    }
    fn bytes(&self) -> usize {
        self.len()
    }
}

// SAFETY: The memory is static and never written to.
unsafe impl IoBuf for &'static [u8] {
    fn stable_ptr(&self) -> *const u8 {
        self.as_ptr()
    }
    fn bytes(&self) -> usize {
        self.len()
    }
}

// SAFETY: The memory is static and never written to.
unsafe impl IoBuf for &'static str {
    fn stable_ptr(&self) -> *const u8 {
        self.as_ptr()
    }
    fn bytes(&self) -> usize {
        self.len()
    }
}

// SAFETY: Shared contents are on the heap, and only a sole owner can write to them.
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
