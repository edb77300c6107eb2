# SPDX-License-Identifier: MIT
"""What all runs of a test say together, and the table of that."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

from pool import PeersError

PASS = "PASS"

# Verdicts, in the order in which they are printed.
BOTH = "passes both ways"
NEITHER = "passes neither way"
ONLY_PREFIX = "passes only under the prefix"
UNBUILT = "unbuilt"
NATIVE_FLAKY = "fails natively now and then"
KNOWN = "known to fail under the prefix"
FLAKY = "passes natively, fails under the prefix now and then"
FAILS = "passes natively, fails under the prefix"
ORDER = (BOTH, NEITHER, ONLY_PREFIX, UNBUILT, NATIVE_FLAKY, KNOWN, FLAKY, FAILS)
NAMED = (ONLY_PREFIX, NATIVE_FLAKY, KNOWN, FLAKY, FAILS)


@dataclass(frozen=True)
class Run:
    """One run of a test."""

    result: str
    status: int | None
    seconds: float
    output: str = ""  # the end of it, unless it passed

    @property
    def passed(self) -> bool:
        return self.result == PASS


@dataclass
class Record:
    """All runs of a test."""

    name: str
    native: list[Run] = field(default_factory=list)
    prefix: list[Run] = field(default_factory=list)
    known: str = ""  # why it fails under the prefix
    unbuilt: str = ""

    def suspect(self) -> bool:
        """Would more runs tell more?"""
        if self.known or not self.native:
            return False
        return passes(self.native) != passes(self.prefix)

    def verdict(self) -> str:
        native, prefix = passes(self.native), passes(self.prefix)
        if self.unbuilt:
            return UNBUILT
        if native == 0:
            return NEITHER if prefix == 0 else ONLY_PREFIX
        if prefix < 1 and self.known:
            return KNOWN
        if native < 1 and (prefix or native <= 0.5):
            return NATIVE_FLAKY
        if prefix == 1:
            return BOTH
        return FLAKY if prefix else FAILS

    def line(self) -> str:
        words = [self.name, how(self.prefix)]
        if any(not run.passed for run in self.native):
            words.append(f"natively {how(self.native)}")
        if self.known:
            words.append(f"({self.known})")
        return "  ".join(words)

    def said(self) -> str:
        """The last line of a run that failed."""
        for run in self.prefix:
            lines = run.output.strip().splitlines()
            if not run.passed and lines:
                return lines[-1].strip()[:100]
        return ""


def passes(runs: Sequence[Run]) -> float:
    """The share that passed."""
    return sum(run.passed for run in runs) / len(runs) if runs else 0.0


def how(runs: Sequence[Run]) -> str:
    """Such as "2 CRASH, 1 PASS"."""
    counts = Counter(run.result for run in runs)
    if len(runs) == 1:
        return runs[0].result
    return ", ".join(f"{count} {result}" for result, count in counts.most_common())


class History:
    """What tests did natively, kept in the work folder."""

    def __init__(self, path: Path, forget: bool) -> None:
        self.path = path
        self.runs: dict[str, list[Run]] = {}
        if path.exists():
            for name, runs in json.loads(path.read_text()).items():
                self.runs[name] = [Run(**run) for run in runs]
        self.forget = forget

    def of(self, name: str, limit: float) -> list[Run]:
        """A run that had less time than there is now may end otherwise."""
        if self.forget:
            return []
        runs = self.runs.get(name, [])
        return [run for run in runs if run.status is not None or run.seconds >= limit]

    def seconds(self, name: str) -> float:
        return max((run.seconds for run in self.runs.get(name, [])), default=0.0)

    def save(self, records: Iterable[Record]) -> None:
        self.runs.update({r.name: r.native for r in records if r.native})
        text = json.dumps({k: list(map(asdict, v)) for k, v in self.runs.items()})
        new = self.path.with_suffix(".new")
        new.write_text(text)
        new.rename(self.path)


def known_failures(path: Path | None) -> dict[str, str]:
    """One a line: its name and the reason."""
    found = {}
    for line in path.read_text().splitlines() if path else []:
        name, _, reason = line.partition("#")[0].strip().partition(" ")
        if name and not reason.strip():
            raise PeersError(f"{path}: {name}: no reason is given")
        if name:
            found[name] = reason.strip()
    return found


def crossed(records: Iterable[Record]) -> list[str]:
    """Of each test's first run natively, and under the prefix."""
    pairs = Counter(
        (r.native[0].result, r.prefix[0].result) for r in records if r.prefix
    )
    rows = sorted({native for native, _ in pairs})
    columns = sorted({prefix for _, prefix in pairs})
    lines = ["natively    under the prefix:" + "".join(f"{c:>12}" for c in columns)]
    for row in rows:
        cells = "".join(f"{pairs[row, column] or '-':>12}" for column in columns)
        lines.append(f"{row:29}{cells}")
    return lines


def summary(records: Sequence[Record]) -> list[str]:
    """How many of each verdict, and which need a look."""
    lines = []
    for verdict in ORDER:
        found = [record for record in records if record.verdict() == verdict]
        if found:
            lines.append(f"{len(found):5}  {verdict}")
        for record in found if verdict in NAMED else []:
            lines.append(f"         {record.line()}")
            if verdict in (FLAKY, FAILS) and record.said():
                lines.append(f"           {record.said()}")
    stale = [r.name for r in records if r.known and passes(r.prefix) == 1]
    lines += [f"       {name}: known to fail, but it passes" for name in stale]
    return lines


def natively(records: Sequence[Record]) -> list[str]:
    """The same, if there is no prefix."""
    counts = Counter(how(r.native[:1]) for r in records if r.native)
    lines = [f"{count:5}  {result}" for result, count in counts.most_common()]
    unbuilt = sum(bool(record.unbuilt) for record in records)
    lines.append(f"{unbuilt:5}  {UNBUILT}")
    for record in records:
        if 0 < passes(record.native) < 1:
            lines.append(f"       flaky: {record.name}  {how(record.native)}")
    return lines
