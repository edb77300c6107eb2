# SPDX-License-Identifier: MIT
"""flexsc bench generator: is the load generator right? bench --raw load and a client of
another project load one nginx on the measured core by turns, with equal requests.

    closed     a page of 1 KiB over connections that are kept, beside wrk
    sessions   20 requests for pages of 64 bytes to 8 KiB over a connection, at half
               the requests a second of the closed loop, or fewer, beside httperf
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

from flexbench import (
    clients,
    pair,
    quiet,
    servers,
    table,
    tools,
)
from flexbench.compare import (
    Interval,
    ratio,
)
from flexbench.runner import (
    Plan,
    measure_all,
    raw,
)
from flexbench.samples import (
    BenchError,
    Json,
    Measurement,
    Run,
    Settings,
)
from flexbench.servers import (
    Server,
    Site,
)

from .webserver import (
    fileset,
    workload,
)

BENCH = "generator"
OURS, WRK, HTTPERF = "load", "wrk", "httperf"
CLOSED, SESSIONS = "closed", "sessions"
OTHERS = {CLOSED: WRK, SESSIONS: HTTPERF}
TITLES = {
    CLOSED: "closed loop, 1 KiB, connections that are kept",
    SESSIONS: f"sessions of {workload.REQUESTS} requests, 64 bytes to 8 KiB",
}
RATE = "responses_per_s"
AGREE = 0.05  # how far a ratio of clients that agree may be from 1
WARM_MS = 300
TIMEOUT_S = 10
# httperf reads 1,000 sessions of a file at most. All its connections are from one
# address, so the address' ports bound the sessions a second.
TRACE_SESSIONS = 1000
RATE_MAX = 500


def parse_httperf(text: str) -> Json:
    """httperf's output in the form of bench --raw. BenchError: a request failed."""
    total = re.search(
        r"^Total: connections \d+ requests \d+ replies (\d+) test-duration (\S+) s$",
        text,
        re.MULTILINE,
    )
    status = re.search(r"^Reply status: .*?2xx=(\d+) ", text, re.MULTILINE)
    times = re.search(r"^Reply time \[ms\]: response (\S+) ", text, re.MULTILINE)
    errors = re.findall(r"^Errors: (?:total|fd-unavail).*$", text, re.MULTILINE)
    if not total or not status or not times or float(total[2]) == 0:
        raise BenchError("httperf: " + (" ".join(text.split())[-200:] or "no word"))
    if re.search(r" [1-9]", " ".join(errors)) or total[1] != status[1]:
        raise BenchError("httperf: under load: " + "; ".join([*errors, status[0]]))
    return {
        "samples": {
            RATE: [int(total[1]) / float(total[2])],
            "exchange_mean_us": [1000 * float(times[1])],
        },
        "counts": {"answered": int(total[1])},
    }


@dataclass
class Bench:
    """What all measurements of one run share. folder: of traces."""

    plan: Plan
    folder: Path
    server: Server
    closed: list[float] = field(default_factory=list)  # answers a second

    @property
    def connections(self) -> int:
        return self.plan.connections or pair.CONNECTIONS

    @property
    def rate(self) -> int:
        """Sessions a second: half of the closed loop's requests, or RATE_MAX."""
        rate = int(max(self.closed, default=0) / 2 / workload.REQUESTS)
        return min(RATE_MAX, max(1, rate))

    def trace(self, part: str) -> Path:
        name = {CLOSED: "page", SESSIONS: "pages"}[part]
        path = self.folder / name
        options = workload.Options(sessions=TRACE_SESSIONS)
        path.write_text("".join(workload.text(name, options)), encoding="ascii")
        return path

    def ours(self, settings: Settings) -> Json:
        plan, part = self.plan, str(settings["part"])
        url = urlsplit(self.server.url)
        args: Settings = {
            "port": url.port or 80,
            "address": plan.network.address,
            "source": plan.network.source,
            "trace": str(self.trace(part)),
            "timeout_ms": 1000 * TIMEOUT_S,
            "threads": min(len(plan.cores.load), self.connections),
        }
        if part == CLOSED:
            args |= {"conns": "kept", "connections": self.connections}
            args |= {"seconds": plan.seconds, "warm_ms": WARM_MS}
        else:
            rate = int(settings["rate"])
            args |= {"rate": rate, "count": rate * plan.seconds}
        found = raw(plan.flexsc, "load", args, clients.placed(plan, []))
        counts = found["counts"]
        if counts["answered"] != counts["offered"]:
            raise BenchError(f"load: {counts['answered']} of {counts['offered']}")
        return found

    def wrk(self, settings: Settings) -> Json:
        url = self.server.url + fileset.page(workload.PAGE).name
        seconds = self.plan.seconds
        command = clients.wrk(self.plan, self.connections, seconds, url)
        found = clients.run_wrk(command, seconds)
        samples = {RATE: [found.requests_per_s], "response_p50_us": [found.p50_us]}
        return {
            "samples": {**samples, "response_p99_us": [found.p99_us]},
            "counts": {"answered": found.requests},
        }

    def httperf(self, settings: Settings) -> Json:
        url, rate = urlsplit(self.server.url), int(settings["rate"])
        count, trace = rate * self.plan.seconds, self.trace(SESSIONS)
        command = [tools.need(HTTPERF), "--hog", f"--timeout={TIMEOUT_S}"]
        command += [f"--server={url.hostname}", f"--port={url.port}"]
        command += [f"--rate={rate}", f"--wsesslog={count},0,{trace}"]
        placed = clients.placed(self.plan, command)
        return parse_httperf(clients.execute(HTTPERF, placed, self.plan.seconds).stdout)

    def once(self, settings: Settings) -> Json:
        by_name: dict[str, Callable[[Settings], Json]] = {
            OURS: self.ours,
            WRK: self.wrk,
            HTTPERF: self.httperf,
        }
        before = quiet.clock_s(self.server.pid)
        found = by_name[str(settings["variant"])](settings)
        took = quiet.clock_s(self.server.pid) - before
        answered = found["counts"]["answered"] + found["counts"].get("warm_up", 0)
        found["samples"]["server_us"] = [1e6 * took / max(1, answered)]
        return found

    def measure(self, run: Run, part: str) -> None:
        settings: Settings = {
            "part": part,
            "rate": self.rate if part == SESSIONS else 0,
            "connections": self.connections if part == CLOSED else 0,
            "seconds": self.plan.seconds,
            "network": self.plan.network.kind,
        }
        variants: list[Settings] = [
            {"variant": name, **settings} for name in (OURS, OTHERS[part])
        ]
        measure_all(run, self.plan, BENCH, variants, self.once)


def parse(words: Sequence[str]) -> list[str]:
    for word in words:
        if word not in TITLES:
            raise BenchError(f"{BENCH}: {word}: give {', '.join(TITLES)}")
    return [part for part in TITLES if part in words or not words]


def measure(run: Run, plan: Plan) -> None:
    parts = parse(plan.words)
    for program in ("nginx", "taskset", *(OTHERS[part] for part in parts)):
        tools.need(program)
    with tempfile.TemporaryDirectory(prefix="flexbench-") as name:
        folder = Path(name)
        fileset.write(folder / "files", fileset.pages())
        with servers.nginx(
            plan, "nginx", folder / "nginx", Site(folder / "files", cached=True)
        ) as server:
            page = fileset.page(workload.PAGE)
            content = bytes(fileset.content(page))
            servers.check(plan.network, server, page.name, content)
            bench = Bench(plan, folder, server)
            closed: Settings = {"part": CLOSED, "variant": OURS}
            bench.closed = bench.once(closed)["samples"][RATE]
            for part in parts:
                bench.measure(run, part)


# Tables.


def verdict(found: Interval) -> str:
    """Whether the clients agree, by the interval of their ratio."""
    percent = f"{100 * AGREE:.0f} %"
    low, high = 1 - AGREE, 1 + AGREE
    if low <= found.low and found.high <= high:
        return f"the clients agree within {percent}"
    if found.high < low or high < found.low:
        return f"THE CLIENTS DIFFER by more than {percent}: trust neither"
    return f"whether the clients agree within {percent} can't be told"


def lines(ours: Measurement, theirs: Measurement) -> list[list[str]]:
    names = {
        RATE: "answers/s",
        "exchange_mean_us": "mean time of an answer, us",
        "response_p50_us": "latency p50, us",
        "response_p99_us": "latency p99, us",
        "server_us": "the server's time for an answer, us",
    }
    both = ours.rounds[0]["samples"], theirs.rounds[0]["samples"]
    return [
        [
            title,
            table.number(ours.median(name)),
            table.number(theirs.median(name)),
            table.ratio(ratio(ours.series(name), theirs.series(name))),
        ]
        for name, title in names.items()
        if name in both[0] and name in both[1]
    ]


def show(run: Run) -> list[str]:
    text = []
    for part, other in OTHERS.items():
        ours = run.find(BENCH, part=part, variant=OURS)
        theirs = run.find(BENCH, part=part, variant=other)
        if not ours or not theirs:
            continue
        found = ratio(ours.series(RATE), theirs.series(RATE))
        title = f"generator: {verdict(found)}; {TITLES[part]}; {table.how(ours)}\n"
        head = [part, OURS, other, f"{OURS}/{other}"]
        text.append(title + table.table(head, lines(ours, theirs)))
    return text
