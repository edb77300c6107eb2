# SPDX-License-Identifier: MIT
"""A strict parser of Prometheus' text format."""

from __future__ import annotations

import re

SAMPLE = re.compile(
    r'([a-z_]+)(?:\{((?:[a-z]+="(?:[^"\\\n]|\\.)*",?)*)\})? (-?\d+)', re.ASCII
)


def samples(text: str) -> dict[str, int]:
    """The value of each sample, by the sample's name and labels.

    Fails unless each family has a HELP and a TYPE line directly before its samples.
    """
    assert text.endswith("\n")
    found: dict[str, int] = {}
    family = kind = ""
    families: set[str] = set()
    for line in text.splitlines():
        if help := re.fullmatch(r"# HELP (\w+) \S.*", line):
            family = help[1]
            assert family not in families
            families.add(family)
        elif type := re.fullmatch(r"# TYPE (\w+) (counter|gauge)", line):
            assert type[1] == family
            kind = type[2]
            assert family.endswith("_total") == (kind == "counter")
        else:
            sample = SAMPLE.fullmatch(line)
            assert sample, line
            assert sample[1] == family
            key = sample[1] + (f"{{{sample[2]}}}" if sample[2] else "")
            assert key not in found
            assert kind == "gauge" or int(sample[3]) >= 0
            found[key] = int(sample[3])
    return found
