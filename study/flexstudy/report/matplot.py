# SPDX-License-Identifier: MIT
"""matplotlib, if it is there."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from flexbench.samples import BenchError


def load(wanted: str) -> Any:
    """matplotlib.pyplot, by which one input makes one file. BenchError: matplotlib isn't
    installed, so there is nothing of what is wanted.
    """
    try:
        matplotlib = import_module("matplotlib")
    except ImportError:
        raise BenchError(
            f"no {wanted}: matplotlib isn't installed; it comes with Debian's package "
            "python3-matplotlib"
        ) from None
    matplotlib.use("agg")
    # The user's own settings don't change files.
    matplotlib.rcdefaults()
    matplotlib.rcParams["svg.hashsalt"] = "flexbench"
    matplotlib.rcParams["svg.fonttype"] = "none"
    return import_module("matplotlib.pyplot")
