# SPDX-License-Identifier: MIT
"""Loads matplotlib, if it is installed."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from flexbench.samples import BenchError


def load(wanted: str) -> Any:
    """matplotlib.pyplot, set up so that the same input makes the same file. BenchError:
    matplotlib isn't installed, so "wanted" can't be made.
    """
    try:
        matplotlib = import_module("matplotlib")
    except ImportError:
        raise BenchError(
            f"can't draw {wanted}: matplotlib isn't installed; it "
            "comes with Debian's package "
            "python3-matplotlib"
        ) from None
    matplotlib.use("agg")
    # Ignore the user's own settings.
    matplotlib.rcdefaults()
    matplotlib.rcParams["svg.hashsalt"] = "flexbench"
    matplotlib.rcParams["svg.fonttype"] = "none"
    return import_module("matplotlib.pyplot")
