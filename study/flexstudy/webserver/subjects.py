# SPDX-License-Identifier: MIT
"""The subjects of the study: models, which are drivers of the example web server,
natively or under flexsc run; and two other servers with features of their own, whose
results don't characterise a model.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from flexbench import examples, servers
from flexbench.runner import Plan
from flexbench.running import FLEXSC, NATIVE, way
from flexbench.servers import Server, Site

BENCH = "study"
FOLDER = "../study/servers/webserver"  # the servers' folder, relative to the command

EVENTS = "events"

Tuning = list[str]
Tunings = Callable[[int, int], list[Tuning]]

THREADS_MAX = 32000  # limit of web-threads
SPARE_THREADS = 16
CLIENTS_MAX = THREADS_MAX - SPARE_THREADS


# Functions for Model.tunings. Each takes a number of connections and a number of cores.


def threads(connections: int, cores: int) -> list[Tuning]:
    """More threads than connections, because a kept connection occupies its thread."""
    least = connections + SPARE_THREADS
    numbers = {least}
    if least < THREADS_MAX:
        numbers |= {min(n, THREADS_MAX) for n in (2 * least, 4 * least)}
    return [["--threads", str(n)] for n in sorted(numbers)]


def of_each(option: str, cores: int) -> Tuning:
    """The option for one copy, or loop, per core; empty for one core."""
    return [option, str(cores)] if cores > 1 else []


def events(connections: int, cores: int) -> list[Tuning]:
    copies = of_each("--copies", cores)
    return [[*copies, "--accepts", str(n)] for n in (16, 1, 256)]


def helped(connections: int, cores: int) -> list[Tuning]:
    copies = of_each("--copies", cores)
    return [[*copies, "--helpers", str(n)] for n in (2, 1, 8)]


def loops(connections: int, cores: int) -> list[Tuning]:
    return [of_each("--loops", cores)]


def stages(connections: int, cores: int) -> list[Tuning]:
    found = []
    for each, files in ((1, 1), (1, 2), (2, 4)):
        n, file = str(each * cores), str(files * cores)
        threads = ["--read", n, "--file", file, "--write", n]
        found += [[*threads, "--batch", batch] for batch in ("16", "1")]
    return found


@dataclass(frozen=True)
class Model:
    """A model. tunings: returns the possible tunings; the first one is the default."""

    name: str
    program: str  # the driver's program
    title: str
    tunings: Tunings
    variant: str = NATIVE
    options: Sequence[str] = field(default_factory=list)


MODELS = [
    Model("threads", "web-threads", "a blocking thread for each client", threads),
    Model("threads-flexsc", "web-threads", "the same, flexsc run", threads, FLEXSC),
    Model(EVENTS, "web-events", "an epoll set", events),
    Model("helpers", "web-events", "the same, threads for files", helped),
    Model("loops", "web-loops", "libflexsc", loops),
    Model("stages", "web-stages", "queues between threads", stages),
    Model("stages-flexsc", "web-stages", "the same, flexsc run", stages, FLEXSC),
]
# Servers that aren't models, because they have features of their own.
SERVE, NGINX = "serve", "nginx"
# flexsc serve needs two descriptors per client, and 16 per loop. SPARE: half of the
# descriptors minus the clients that it accepts with one loop. OF_A_LOOP: how many fewer
# clients it accepts for each additional loop.
SPARE, OF_A_LOOP = 100, 8
OTHERS = {SERVE: "flexsc serve", NGINX: "nginx, a worker for each core"}
NAMES = [*(model.name for model in MODELS), *OTHERS]


def model_of(name: str) -> Model | None:
    return next((model for model in MODELS if model.name == name), None)


def titles() -> dict[str, str]:
    return {**{model.name: model.title for model in MODELS}, **OTHERS}


def tunings(name: str, connections: int, cores: int = 1) -> list[Tuning]:
    """The tunings of a subject; the first one is the default."""
    model = model_of(name)
    if name == SERVE:
        most = servers.descriptors() // 2 - SPARE - OF_A_LOOP * (cores - 1)
        return [["--max-connections", str(most)]]
    return model.tunings(connections, cores) if model else [[]]


def command(plan: Plan, model: Model, tuning: Tuning, root: Path) -> list[str]:
    program = str(examples.find(plan.flexsc, model.program, FOLDER))
    carriers = ["--carriers", str(len(plan.cores.server))]
    before = way(plan, model.variant, *carriers)
    address = ["--bind", plan.network.address]
    return [*plan.network.server, *before, program, *address, *tuning, str(root)]


@contextmanager
def driver(plan: Plan, model: Model, tuning: Tuning, root: Path) -> Iterator[Server]:
    args = command(plan, model, tuning, root)
    cores = servers.listed(plan.cores.server)
    with examples.started(model.name, cores, args) as program:
        program.check()
        url = f"http://{plan.network.address}:{program.port}/"
        yield Server(model.name, url, program.pid)
        program.check()


@contextmanager
def started(plan: Plan, name: str, tuning: Tuning, folder: Path) -> Iterator[Server]:
    """Run a model or another server with the files of folder/"root" on the server's
    cores until the block ends. nginx has no tuning.
    """
    root = folder / "root"
    model = model_of(name)
    if model:
        with driver(plan, model, tuning, root) as server:
            yield server
    elif name == SERVE:
        with servers.flexsc(plan, root, 0, tuning) as server:
            yield Server(name, server.url, server.pid)
    else:
        with servers.nginx(plan, name, folder / name, Site(root)) as server:
            yield server
