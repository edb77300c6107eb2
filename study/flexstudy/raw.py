# SPDX-License-Identifier: MIT
"""The study's measuring loops, which flexsc study --raw runs."""

from __future__ import annotations

from collections.abc import Sequence

from flexbench import runner
from flexbench.samples import Json, Settings


def raw(flexsc: str, case: str, settings: Settings, before: Sequence[str] = ()) -> Json:
    return runner.raw(flexsc, case, settings, before, "study")
