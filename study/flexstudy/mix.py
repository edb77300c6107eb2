# SPDX-License-Identifier: MIT
"""Sizes of files as measured on web servers (Barford and Crovella, SIGMETRICS 1998):
most are lognormal, the largest ones have a Pareto tail. SEND, section 4.9, requests a
list of such files repeatedly.
"""

from __future__ import annotations

import math
import random
from statistics import NormalDist

FILES = 40
MU, SIGMA = 9.357, 1.318  # of the logarithm of the size in bytes
BODY = 0.93  # share of the lognormal part
TAIL_BYTES, ALPHA = 133_000, 1.1
KIB_MAX = 1024  # the server's largest page


def quantile(share: float) -> float:
    """The size in bytes that this share of all files doesn't exceed."""
    if share < BODY:
        return math.exp(NormalDist(MU, SIGMA).inv_cdf(share / BODY))
    left = (1 - share) / (1 - BODY)
    return float(TAIL_BYTES * left ** (-1 / ALPHA))


def sizes() -> list[int]:
    """Sizes in KiB, the same list every time."""
    shares = [(i + 0.5) / FILES for i in range(FILES)]
    found = [min(KIB_MAX, math.ceil(quantile(share) / 1024)) for share in shares]
    random.Random(1).shuffle(found)
    return found
