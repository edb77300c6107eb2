# SPDX-License-Identifier: MIT
"""Start a child whose system calls a seccomp filter restricts."""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Callable

FAIL, KILL, ALLOW = 0x00050000, 0x80000000, 0x7FFF0000


def forbidden(number: int, error: int = 0, action: int = FAIL) -> Callable[[], None]:
    """Return a preexec_fn whose filter makes one system call fail, or end the process."""
    # Load the call's number. If it is the given one, act; else skip the action and
    # allow.
    code = struct.pack("HBBI", 0x20, 0, 0, 0)
    code += struct.pack("HBBI", 0x15, 0, 1, number)
    code += struct.pack("HBBI", 0x06, 0, 0, action | error)
    code += struct.pack("HBBI", 0x06, 0, 0, ALLOW)
    buffer = ctypes.create_string_buffer(code)
    program = struct.pack("HxxxxxxP", 4, ctypes.addressof(buffer))
    libc = ctypes.CDLL(None, use_errno=True)

    def forbid() -> None:
        assert buffer
        if libc.prctl(38, 1, 0, 0, 0) or libc.prctl(22, 2, program, 0, 0):
            raise OSError(ctypes.get_errno(), "no filter of system calls")

    return forbid
