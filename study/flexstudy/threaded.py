# SPDX-License-Identifier: MIT
"""Programs whose threads serve, in several variants: each configuration natively and
under flexsc run. All variants of a program run at the same time, on the same
cores.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from flexbench import tools
from flexbench.idle import descriptors
from flexbench.runner import Plan
from flexbench.running import (
    FLEXSC,
    NATIVE,
    Program,
    carriers,
    elsewhere,
    way,
)
from flexbench.sweep import Sweep
from flexbench.tools import Load


@dataclass(frozen=True)
class Variant:
    """name: in the files of measurements. way: NATIVE or FLEXSC. options: options of
    flexsc run. arguments: the program's arguments. remote: calls execute on other cores
    than the program.
    """

    name: str
    configuration: str
    way: str
    arguments: Sequence[str] = ()
    options: Sequence[str] = ()
    remote: bool = False

    @property
    def title(self) -> str:
        text = self.configuration + (", flexsc run" if self.way == FLEXSC else "")
        return text + (", calls elsewhere" if self.remote else "")

    def before(self, plan: Plan) -> list[str]:
        """The words in front of the program's command."""
        cores = elsewhere if self.remote else carriers
        runtime = way(plan, self.way, *cores(plan), *self.options)
        return [*plan.network.server, *plan.under, *runtime]


def variants(**configurations: Sequence[str]) -> list[Variant]:
    """Each configuration, natively and under flexsc run. The values are the program's
    arguments. The first configuration is the one that most users choose; all others are
    compared with it. The last one is that of the papers' figures; its variants are
    called NATIVE and FLEXSC.
    """
    *_, papers = configurations
    return [
        Variant(way if name == papers else f"{name}-{way}", name, way, arguments)
        for name, arguments in configurations.items()
        for way in (NATIVE, FLEXSC)
    ]


Prepare = Callable[[Plan, Path], None]
# Arguments include Prepare's folder, the variant's own folder, and the number of clients.
Start = Callable[[Plan, Variant, Path, Path, int], AbstractContextManager[Program]]


def nothing(plan: Plan, base: Path) -> None:
    return


@dataclass(frozen=True)
class Kind:
    """The specific parts of a program. prepare: prepares in a folder what all variants
    share. apart: new servers are started for each number of clients.
    """

    title: str
    unit: str
    clients: str
    count: int
    modes: dict[str, str]
    tools: list[str]
    variants: list[Variant]
    start: Start
    load: Callable[[Plan, Program, str, int, int], Load]
    sweep: Sweep
    prepare: Prepare = nothing
    apart: bool = False

    def papers(self) -> Kind:
        """The same, with only the variants of the papers' figures."""
        return self.only(self.variants[-1].configuration)

    def native(self, variant: Variant) -> Variant:
        """The native variant of the same configuration."""
        return self.only(variant.configuration).variants[0]

    @property
    def configurations(self) -> list[str]:
        return list(dict.fromkeys(one.configuration for one in self.variants))

    def only(self, configuration: str) -> Kind:
        found = [one for one in self.variants if one.configuration == configuration]
        return replace(self, variants=found)

    def with_remote(self) -> Kind:
        """The same, and each configuration with its calls on other cores."""
        remote = [
            replace(one, name=f"{one.name}-remote", remote=True)
            for one in self.variants
            if one.way == FLEXSC
        ]
        return replace(self, variants=[*self.variants, *remote])

    def connections(self, plan: Plan) -> int:
        return plan.connections or self.count


@contextmanager
def started(plan: Plan, kind: Kind) -> Iterator[dict[str, Program]]:
    """Run the programs of all variants; returns them by the variants' names."""
    clients = kind.connections(plan)
    for tool in kind.tools:
        tools.need(tool)
    with (
        tempfile.TemporaryDirectory(prefix="flexbench-") as name,
        descriptors(clients),
        ExitStack() as stack,
    ):
        folder = Path(name)
        # A server may switch to another user.
        folder.chmod(0o755)
        base = folder / "base"
        base.mkdir()
        kind.prepare(plan, base)
        found = {}
        for one in kind.variants:
            own = folder / one.name
            own.mkdir()
            program = kind.start(plan, one, base, own, clients)
            found[one.name] = stack.enter_context(program)
        yield found
