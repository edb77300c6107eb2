# SPDX-License-Identifier: MIT
"""The workloads of the study's clients: sessions of requests, drawn with a seed, as
text that both httperf's --wsesslog and "flexsc study --raw load trace=FILE" read.

    specweb   the files of the classes, by SPECweb99's popularity, with pauses as
              people make them
    pages     sessions of 20 requests for pages of 64 bytes to 8 KiB, all equally
              likely, without pauses
"""

from __future__ import annotations

import math
import random
from bisect import bisect
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate


from . import fileset
from .fileset import File

# SPECweb99's shares of the classes, and the order of popularity of a class' files.
SHARES = (0.35, 0.50, 0.14, 0.01)
ORDER = (5, 4, 6, 3, 7, 2, 8, 9, 1)

# Means: the number of pages per session, of which the first isn't drawn; a page's files
# after the first; seconds of think time between the files of a page, and between pages.
PAGES, FURTHER = 5, 3
WITHIN_S, BETWEEN_S = 0.343, 3.0

REQUESTS = 20  # requests per session of the workload pages


@dataclass(frozen=True)
class Request:
    """think: seconds between the request's answer and the session's next request."""

    file: File
    think: float = 0


Session = list[Request]


def zipf(count: int) -> list[float]:
    """Shares by Zipf's law with the exponent 1, in the order of popularity."""
    weights = [1 / rank for rank in range(1, count + 1)]
    return [weight / sum(weights) for weight in weights]


class Draw:
    """Random draws. Only Random.random() is used, because Python guarantees its numbers
    for a seed. So equal seeds give equal sessions everywhere.
    """

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed).random

    def of(self, sums: Sequence[float]) -> int:
        """An index into shares, drawn with these probabilities. sums: the shares'
        running sums."""
        return min(bisect(sums, self.random()), len(sums) - 1)

    def geometric(self, mean: float) -> int:
        """A number from 0 with a geometric distribution of this mean."""
        return int(math.log(1 - self.random()) / math.log(mean / (1 + mean)))


class Popularity:
    """The popularity of the files of the classes: folders and ranks by Zipf's law."""

    def __init__(self, folders: int) -> None:
        self.folders = zipf(folders)
        self.within = zipf(len(ORDER))
        shares = self.folders, SHARES, self.within
        self.sums = [list(accumulate(share)) for share in shares]

    def draw(self, chance: Draw) -> File:
        folder, klass, rank = (chance.of(sums) for sums in self.sums)
        return fileset.filed(folder, klass, ORDER[rank])

    def all(self) -> Iterator[tuple[float, File]]:
        """Each file, with its share of the requests."""
        for folder, by_folder in enumerate(self.folders):
            for klass, by_class in enumerate(SHARES):
                for index, by_file in zip(ORDER, self.within, strict=True):
                    share = by_folder * by_class * by_file
                    yield share, fileset.filed(folder, klass, index)


@dataclass(frozen=True)
class Options:
    folders: int = fileset.FOLDERS
    sessions: int = 1000
    seed: int = 1
    think: float = 1  # multiplies the think times


def specweb(options: Options, chance: Draw) -> Iterator[Session]:
    popularity = Popularity(options.folders)
    within, between = WITHIN_S * options.think, BETWEEN_S * options.think
    for _ in range(options.sessions):
        found: Session = []
        for _ in range(1 + chance.geometric(PAGES - 1)):
            thoughts = [within] * chance.geometric(FURTHER) + [between]
            found += [Request(popularity.draw(chance), think) for think in thoughts]
        # No think time follows the last request.
        found[-1] = replace(found[-1], think=0)
        yield found


def pages(options: Options, chance: Draw) -> Iterator[Session]:
    files = list(fileset.pages())
    for _ in range(options.sessions):
        yield [
            Request(files[int(chance.random() * len(files))]) for _ in range(REQUESTS)
        ]


@dataclass(frozen=True)
class Workload:
    files: Callable[[Options], Iterable[File]]
    draw: Callable[[Options, Draw], Iterator[Session]]


WORKLOADS = {
    "specweb": Workload(lambda options: fileset.classes(options.folders), specweb),
    "pages": Workload(lambda _: fileset.pages(), pages),
}


def sessions(name: str, options: Options) -> Iterator[Session]:
    return WORKLOADS[name].draw(options, Draw(options.seed))


# As text.


def line(request: Request) -> str:
    think = f" think={request.think:.6g}" if request.think else ""
    return f"/{request.file.name}{think}\n"
