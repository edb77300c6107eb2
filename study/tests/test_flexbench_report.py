# SPDX-License-Identifier: MIT
"""flexsc study report: verdicts follow from intervals, and the page from its files."""

from __future__ import annotations

import copy
import html
import json
import re
import sys
from dataclasses import asdict
from html.parser import HTMLParser
from pathlib import Path

import pytest
from flexbench.compare import Interval
from flexbench.samples import Json
from flexstudy import papers
from flexstudy.report import __main__ as command
from flexstudy.report import draw, figures, measure, runs
from flexstudy.report.figure import Bench, State, Verdict, gain_of, judge
from measured import CALLS, calls, kept
from test_flexbench_overload import a_run

VOID = {"meta", "br"}


@pytest.fixture(autouse=True)
def no_drawings(monkeypatch: pytest.MonkeyPatch) -> None:
    """Most tests check the tables only."""
    monkeypatch.setitem(sys.modules, "matplotlib", None)


def report(out: Path, *args: str | Path) -> str:
    assert command.main([*map(str, args), "--out", str(out)]) == 0
    return (out / "report.html").read_text(encoding="utf-8")


def recorded(out: Path) -> dict[str, Json]:
    found = json.loads((out / "report.json").read_text(encoding="utf-8"))
    return {figure["id"]: figure for figure in found["figures"]}


def part(page: str, name: str) -> str:
    found = re.search(rf'<section id="{re.escape(name)}">(.*?)</section>', page, re.S)
    assert found
    return html.unescape(found[1])


# Verdicts.


@pytest.mark.parametrize(
    ("low", "high", "gain", "verdict"),
    [
        (2.3, 2.5, 2.3, Verdict.REACHED),
        (1.1, 2.5, 2.3, Verdict.IN_PART),
        (0.9, 2.5, 2.3, Verdict.EVEN),
        (1.0, 1.2, 2.3, Verdict.EVEN),
        (0.8, 1.0, 2.3, Verdict.EVEN),
        (0.7, 0.9, 2.3, Verdict.OTHER_WAY),
        (1.0, 1.1, 1.0, Verdict.REACHED),
        (0.9, 1.1, 1.0, Verdict.EVEN),
        (0.7, 0.9, 1.0, Verdict.OTHER_WAY),
        # The paper has a loss.
        (0.8, 0.9, 0.7, Verdict.REACHED),
        (0.6, 0.8, 0.7, Verdict.EVEN),
        (0.3, 0.4, 0.7, Verdict.BELOW),
        # The paper has no number.
        (1.1, 1.2, None, Verdict.AHEAD),
        (0.9, 1.2, None, Verdict.EVEN),
        (0.8, 0.9, None, Verdict.OTHER_WAY),
    ],
)
def test_a_verdict_follows_from_the_interval(
    low: float, high: float, gain: float | None, verdict: Verdict
) -> None:
    assert judge(Interval(low, (low + high) / 2, high, 0.75), gain) == verdict


@pytest.mark.parametrize("coverage", [0.0, 0.5])
def test_two_rounds_are_too_few_for_a_verdict(coverage: float) -> None:
    assert judge(Interval(9, 9, 9, coverage), 2) == Verdict.UNSURE


@pytest.mark.parametrize(
    ("name", "gains"),
    [
        ("osdi-f9.csv", [1 / 1.43, 1, 2.3]),
        ("osdi-f10.csv", [0.1, 1]),
        ("osdi-f11.csv", [1.86, 2.16, 2.16, 1.94, 1, None, None]),
        ("osdi-f13.csv", [2, 1 / 0.6]),
        ("osdi-f14.csv", [1.14, 1.37, 1.4, None, None]),
        ("osdi-bind.csv", [1.3, 2.05]),
        ("osdi-f12.csv", [None] * 4),
        ("atc-f7.csv", [1.7, 2.2, 1.7]),
        ("atc-f8.csv", [1 / 0.58, 1 / 0.42]),
        ("send-points.csv", [5, 0.95, 2, None]),
    ],
)
def test_points_are_gains_if_they_are_ratios(
    name: str, gains: list[float | None]
) -> None:
    found = [gain_of(point) for point in papers.read(name).points]
    assert found == [g if g is None else pytest.approx(g) for g in gains]


# Figures.


# The page.


class Balanced(HTMLParser):
    """Checks that all tags are closed in order, and collects references."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.ids: list[str] = []
        self.references: list[str] = []
        self.tags: set[str] = set()

    def noted(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        for name, value in attrs:
            if name == "id":
                self.ids.append(value or "")
            if name.split(":")[-1] in ("href", "src", "srcset", "data", "action"):
                self.references.append(value or "")
            assert not name.startswith("on"), name

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.noted(tag, attrs)
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.noted(tag, attrs)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def checked(page: str) -> Balanced:
    parser = Balanced()
    parser.feed(page)
    parser.close()
    assert parser.open == []
    assert len(parser.ids) == len(set(parser.ids))
    assert {r for r in parser.references if not r.startswith("#")} == set()
    assert {r[1:] for r in parser.references} <= set(parser.ids)
    assert parser.tags.isdisjoint({"script", "link", "iframe", "object", "img"})
    assert "@import" not in page
    assert set(re.findall(r"url\(([^#])", page)) == set()
    return parser


def test_the_page_is_whole_and_refers_to_nothing_outside(tmp_path: Path) -> None:
    page = report(tmp_path, "--from", CALLS)
    parser = checked(page)
    assert {item.id for item in papers.index()} <= set(parser.ids)


def test_each_figure_has_a_state_and_says_why_it_has_no_numbers(tmp_path: Path) -> None:
    report(tmp_path, "--from", CALLS)
    found = recorded(tmp_path)
    assert list(found) == [item.id for item, _ in figures.chosen([])]
    states = {state.value for state in State}
    for figure in found.values():
        assert figure["state"] in states
        assert figure["rows"] or figure["why"], figure["id"]
    assert found["osdi-f9"]["state"] == "measured"
    assert found["osdi-f11"]["state"] == "not measured"
    assert found["osdi-f5"]["state"] == "diagram"
    assert found["osdi-t4"]["state"] == "hardware counters"


def test_a_number_of_the_papers_is_on_the_page_as_in_its_file(tmp_path: Path) -> None:
    page = report(tmp_path, "--from", CALLS)
    for item in papers.index():
        cells = set(re.findall(r"<td>(.*?)</td>", part(page, item.id), re.S))
        for row in papers.data_of(item).cells:
            assert set(row) <= cells, item.id


def test_a_number_of_ours_is_that_of_the_file(tmp_path: Path) -> None:
    report(tmp_path, "--from", CALLS)
    measured = calls()["measurements"]

    def times(variant: str) -> list[float]:
        (found,) = [
            m["rounds"]
            for m in measured
            if (m["settings"]["variant"], m["settings"]["call"]) == (variant, "close")
            and (m["settings"]["batch"], m["settings"]["kernel_cores"]) == (64, "1")
        ]
        return [sorted(r["samples"]["ns_per_call"])[1] for r in found]

    ratios = sorted(p / u for p, u in zip(times("plain"), times("uring"), strict=True))
    (row,) = [
        row
        for row in recorded(tmp_path)["osdi-f9"]["rows"]
        if row["where"] == "close by uring, 64 in a batch" and row["paper"]
    ]
    assert row["gain"]["median"] == pytest.approx(ratios[1])
    assert row["paper"]["value"] == "2.30"
    assert row["paper_gain"] == 2.3
    low, high = ratios[0], ratios[2]
    assert (row["gain"]["low"], row["gain"]["high"]) == pytest.approx((low, high))
    assert row["verdict"] == judge(Interval(low, ratios[1], high, 0.75), 2.3).value


def test_what_is_lost_is_on_top(tmp_path: Path) -> None:
    page = report(tmp_path, "--from", CALLS)
    lost = page[page.index("<h2>Where we lose") : page.index("<h2>The machine")]
    for figure in recorded(tmp_path).values():
        for row in figure["rows"]:
            if row["verdict"] in ("the other way", "below the paper"):
                assert html.escape(row["where"]) in lost
    assert "below the paper" in lost


def test_the_page_has_no_path_of_this_machine(tmp_path: Path) -> None:
    run = calls()
    run["command"] = ["--flexsc", "/somewhere/flexsc", "calls", "--quick"]
    path = kept(tmp_path / "run.json", run)
    page = report(tmp_path, "--from", path)
    assert "flexsc bench calls --quick\n" in page
    assert "/somewhere" not in page
    assert str(tmp_path) not in page


@pytest.mark.parametrize(("percent", "said"), [(5.0, False), (12.4, True)])
def test_rounds_that_others_disturbed_make_a_figure_rough(
    tmp_path: Path, percent: float, said: bool
) -> None:
    run = calls()
    for m in run["measurements"]:
        m["rounds"][1]["samples"]["disturbed_percent"] = [percent / 2, percent]
        m["rounds"][0]["samples"]["disturbed_percent"] = [0.0]
        m["rounds"][2]["samples"]["disturbed_percent"] = [0.0]
    path = kept(tmp_path / "run.json", run)
    page = report(tmp_path, "--from", path)
    rough = "rough: other processes used up to 12 % of the measured cores"
    assert (rough in part(page, "osdi-f9")) == said
    assert recorded(tmp_path)["osdi-f9"]["disturbed_percent"] == percent


def costs() -> list[Json]:
    """As made by flexsc study cost: pwrite slows the first half of a program down."""

    def measured(bench: str, settings: Json, samples: Json, **counts: int) -> Json:
        one = {"samples": samples, "counts": counts}
        return {"bench": bench, "settings": settings, "rounds": [one] * 3}

    ticks = {"control_ticks": [100.0] * 8}
    slow = [200.0] * 4 + [100.0] * 4
    pollute = {"work": "tree", "call": "pwrite", "every": 4}
    same = {"control_ticks": [80.0], "called_ticks": [100.0]}
    call = {"clock_ticks": [10.0], "call_ticks": [510.0]}
    return [
        measured("steps", {"work": "tree"}, {}, instructions=256 * 300),
        measured("lost", {"call": "none"}, {**ticks, "called_ticks": [100.0] * 8}),
        measured("lost", {"call": "pwrite"}, {**ticks, "called_ticks": slow}),
        measured("pollute", pollute, {**same, **call}),
    ]


def test_costs_stand_beside_the_papers_without_a_verdict(tmp_path: Path) -> None:
    run = calls()
    run["measurements"] = costs()
    path = kept(tmp_path / "run.json", run)
    report(tmp_path, "--from", path)
    found = recorded(tmp_path)
    (after,) = found["osdi-f1"]["rows"]
    assert after["paper"]["value"] == "14000"
    assert after["ours"] == "800 ticks of the program"
    for name in ("osdi-f2", "atc-f1"):
        (speed,) = found[name]["rows"]
        assert speed["where"] == "1,200 instructions between calls"
        assert speed["ours"] == "0.80 (0.80-0.80) of the speed without calls"
        assert speed["verdict"] is None
    assert found["osdi-f4"]["rows"][0]["ours"] == "500 ticks for the call"
    assert found["osdi-f3"]["rows"] == []
    assert found["osdi-t1"]["state"] == "not measured"


# Sweeps.


def measured(bench: str, settings: Json, samples: Json) -> Json:
    found = {name: [value] for name, value in samples.items()}
    rounds = [{"samples": found, "counts": {}} for _ in range(3)]
    return {"bench": bench, "settings": settings, "rounds": rounds}


def point(bench: str, settings: Json, rate: float, busy: float = 99.0) -> Json:
    samples = {"requests_per_s": rate, "mean_us": 1e9 / rate, "p99_us": 2e9 / rate}
    shares = {"user_percent": 30.0, "system_percent": 60.0, "idle_percent": 10.0}
    return measured(bench, settings, {**samples, **shares, "busy_percent": busy})


def swept(tmp_path: Path) -> Path:
    """Apache, nginx and entries against the number of clients."""
    run = calls()
    found = []
    for count, native, flexsc, busy in (
        *[(1, 9000.0, 8000.0, 20.0), (16, 20000.0, 60000.0, 60.0)],
        *[(256, 20000.0, 30000.0, 99.0), (1000, 18000.0, 36000.0, 99.0)],
    ):
        for name, rate in (("native", native), ("flexsc", flexsc)):
            key: Json = {"mode": "kept", "variant": name, "connections": count}
            apache = {"program": "apache", **key}
            found.append(point("programs", apache, rate, busy))
        for name, rate in (("nginx", native), ("flexsc", flexsc), ("module", native)):
            key = {"mode": "plain", "variant": name, "connections": count}
            found.append(point("serve", key, rate, busy))
    for count, rate in ((0, 20000.0), (64, 10000.0), (256, 29000.0), (512, 30000.0)):
        key = {"variant": "flexsc" if count else "native", "entries": count}
        found.append(point("entries", {**key, "connections": 512}, rate))
    run["measurements"] = found
    return kept(tmp_path / "sweep.json", run)


def rows_of(out: Path, name: str) -> dict[str, Json]:
    """The figure's rows, keyed by the paper's text and by where ours were measured."""
    rows = recorded(out)[name]["rows"]
    return {
        (row["paper"]["says"] if row["paper"] else row["where"]): row for row in rows
    }


def test_up_to_is_compared_with_the_best_point_of_a_sweep(tmp_path: Path) -> None:
    report(tmp_path, "--from", swept(tmp_path))
    found = rows_of(tmp_path, "osdi-f11")
    best = found["up to 86% with batching alone"]
    # The gain of 3 with 16 clients doesn't count: the clients were the limit.
    assert best["where"] == "apache kept, 1 core, 1000 connections"
    assert (best["gain"]["median"], best["verdict"]) == (2.0, "reached")
    several = found["up to 116% on 2 and 4 cores"]
    assert several["reason"] == "not measured on 4 cores"
    few = found["except for a very low number of concurrent requests flexsc wins"]
    assert few["where"] == "apache kept, 1 core, 1 connection"
    assert few["verdict"] == "the other way"
    limited = found["apache kept, 1 core, 16 connections"]
    assert limited["ours"].endswith("; the clients were the limit")
    assert "limit" not in found["apache kept, 1 core, 256 connections"]["ours"]


def test_a_server_on_several_cores_is_compared_with_the_paper_s(tmp_path: Path) -> None:
    run = json.loads(swept(tmp_path).read_text(encoding="utf-8"))
    for one in copy.deepcopy(run["measurements"]):
        for cores, times in ((2, 3.0), (4, 4.0)):
            rate = one["rounds"][0]["samples"]["requests_per_s"][0]
            ours = times if one["settings"]["variant"] == "flexsc" else 1.0
            key = {**one["settings"], "cores": cores}
            run["measurements"].append(point(one["bench"], key, rate * ours))
    report(tmp_path, "--from", kept(tmp_path / "several.json", run))
    rows = recorded(tmp_path)["osdi-f11"]["rows"]
    where = [r["where"] for r in rows if r["paper"] and r["ours"]]
    assert where[1:3] == [
        "apache kept, 2 cores, 16 connections",
        "apache kept, 4 cores, 16 connections",
    ]
    assert recorded(tmp_path)["osdi-f16"]["rows"][2]["ours"].startswith("apache, 4 cor")
    (two,) = (
        r
        for r in recorded(tmp_path)["atc-f7"]["rows"]
        if r["paper"] and r["where"].startswith("flexsc serve, 2 cores")
    )
    assert two["gain"]["median"] == pytest.approx(9.0)


def test_a_worker_with_calls_elsewhere_is_compared_with_the_paper_s(
    tmp_path: Path,
) -> None:
    run = calls()
    run["measurements"] = [
        measured(
            "nginx",
            {**{"mode": "plain", "variant": name}, "connections": 256, "cores": 2},
            {"requests_per_s": rate, "mean_us": 1e6 / rate, "cpu_us": us},
        )
        for name, rate, us in (
            ("module", 3000.0, 10.0),
            ("stock", 2000.0, 20.0),
            ("remote", 5000.0, 16.0),
        )
    ]
    report(tmp_path, "--from", kept(tmp_path / "remote.json", run))
    what = "one nginx worker with the module, calls elsewhere, 2 cores, 256 connections"
    found = recorded(tmp_path)
    for name, verdict in (("atc-f7", "reached"), ("atc-f8", "reached")):
        (row,) = (r for r in found[name]["rows"] if r["paper"] and r["where"] == what)
        assert (row["gain"]["median"], row["verdict"]) == (2.5, verdict)
    (cpu,) = (r for r in found["atc-f7"]["rows"] if "plain, 2 cores" in r["where"])
    assert cpu["gain"]["median"] == 2.0


def test_a_number_of_clients_is_compared_with_the_same_one(tmp_path: Path) -> None:
    report(tmp_path, "--from", swept(tmp_path))
    late = recorded(tmp_path)["osdi-f13"]["rows"]
    assert [row["where"] for row in late[:2]] == [
        "apache kept, 1 core, 256 connections"
    ] * 2
    assert late[0]["gain"]["median"] == pytest.approx(1.5)
    (row, *_) = recorded(tmp_path)["atc-f8"]["rows"]
    assert row["where"] == "flexsc serve, 1 core, 256 connections"
    gains = [r["where"] for r in recorded(tmp_path)["atc-f7"]["rows"] if r["paper"]]
    assert gains == [
        "flexsc serve, 1 core, 1000 connections",
        "nginx with the module, 1 core, 256 connections",
        "flexsc/epoll, 2 cores, connections 16 and more",
    ]


def test_enough_entries_are_those_near_the_best(tmp_path: Path) -> None:
    report(tmp_path, "--from", swept(tmp_path))
    rows = recorded(tmp_path)["osdi-f16"]["rows"]
    assert rows[0]["ours"] == "apache, 1 core: 256 entries reach 95% of the best"
    assert rows[2]["reason"] == "not measured on 4 cores"
    (more,) = [row for row in rows if row["where"].endswith(", 512 entries")]
    assert more["gain"]["median"] == 1.5


# The study.

MODELS = {"threads": 100.0, "events": 200.0, "stages": 150.0, "loops": 300.0}
SERVERS = {"serve": 400.0, "nginx": 200.0}


def answers(bench: str, key: Json, good: float, busy: float = 99.0) -> Json:
    samples = {"answers_per_s": good, "answers_mbit_per_s": good / 10}
    samples |= {f"response_{p}_us": 1e6 / good for p in ("p50", "p90", "p99", "p999")}
    samples |= {"busy_percent": busy, "client_percent": 50.0}
    return measured(bench, {"think": 10, "folders": 64, **key}, samples)


def studied(tmp_path: Path, cores: int = 1) -> Path:
    """As made by flexsc study webserver: two workloads, whose models peak where MODELS
    says."""
    run = calls()
    found = []
    for load in ("specweb", "pages"):
        for name, peak in {**MODELS, **SERVERS}.items():
            key: Json = {"workload": load, "model": name, "cores": cores}
            key["scaling"] = int(cores > 1)
            found.append(answers("study-peak", {**key, "tuning": ""}, peak))
            for times in ("0.5", "1", "2"):
                rate = int(400 * float(times))
                more = {"times": times, "rate": rate / 20, "offered_per_s": rate}
                good, busy = (rate, 50.0) if rate <= peak else (peak * 0.9, 99.0)
                found.append(answers("study-offered", {**key, **more}, good, busy))
    run["measurements"] = found
    return kept(tmp_path / "study.json", run)


def ours_of(out: Path, name: str) -> dict[str, str]:
    return {row["where"]: row["ours"] for row in recorded(out)[name]["rows"]}


def test_the_study_stands_beside_its_papers(tmp_path: Path) -> None:
    report(tmp_path, "--from", studied(tmp_path))
    found = rows_of(tmp_path, "geneves-f1")
    most = found["35% maximum difference between Knot and Watpipe (Pariag et al.: 18%)"]
    assert most["ours"] == "stages 1.50 (1.50-1.50) times threads"
    assert most["verdict"] is None  # neither of them uses FlexSC
    loops = found["specweb, peak, loops"]
    assert loops["ours"] == "300 beside 200 answers/s, events"
    assert (loops["gain"]["median"], loops["verdict"]) == (1.5, "ahead")
    assert found["specweb, peak, stages"]["gain"] is None
    nginx = rows_of(tmp_path, "atc-f9")
    assert nginx["increases up to 40000"]["ours"] == "400 answers/s at most, serve"
    best = nginx["by as much as 120%"]
    assert best["gain"]["median"] == pytest.approx(400 / 180)
    assert best["verdict"] == "reached"
    setup = ours_of(tmp_path, "geneves-setup")
    assert (setup["files"], setup["prefetched into memory"]) == ("2,304", "yes")
    assert setup["inactive off-period (think time)"] == "0.3 s"


@pytest.mark.parametrize(
    ("cores", "state"), [(1, "machine too small"), (8, "measured")]
)
def test_several_cores_are_shown_if_a_file_has_them(
    tmp_path: Path, cores: int, state: str
) -> None:
    report(tmp_path, "--from", studied(tmp_path, cores))
    found = recorded(tmp_path)
    assert {found[name]["state"] for name in ("geneves-f2", "geneves-f4")} == {state}
    if cores == 8:
        rows = ours_of(tmp_path, "geneves-f2")
        assert "specweb, 8 cores, peak, loops" in rows
        assert rows["all three, 8 cores, connections/s offered"].endswith("serve")
        assert ours_of(tmp_path, "geneves-f4")["loops, 8 cores"].endswith("1.00 times")


def test_peaks_are_compared_with_those_of_their_own_run(tmp_path: Path) -> None:
    def with_peaks(name: str, **peaks: float) -> Path:
        run = calls()
        run["measurements"] = [
            measured(
                "study-peak",
                {
                    "workload": "specweb",
                    "model": "loops",
                    "cores": cores,
                    "scaling": int(len(peaks) > 1),
                },
                {"answers_per_s": rate, "busy_percent": 99.0, "client_percent": 9.0},
            )
            for cores, rate in zip((1, 2), peaks.values(), strict=False)
        ]
        return kept(tmp_path / name, run)

    one = with_peaks("one.json", one=500.0)
    both = with_peaks("both.json", one=1000.0, two=1800.0)
    report(tmp_path, "--from", one, "--from", both)
    ours = ours_of(tmp_path, "geneves-f4")
    assert ours["loops, 1 core"] == "1,000 answers/s, 1.00 times"
    assert ours["loops, 2 cores"] == "1,800 answers/s, 1.80 times"


def test_a_machine_that_is_too_small_isn_t_asked() -> None:
    chosen = [figure for _, figure in figures.chosen(["geneves-f4", "geneves-f2"])]
    assert not measure.wanted(chosen, runs.Runs(), cores=2)
    (bench,) = measure.wanted(chosen, runs.Runs(), cores=4)
    assert bench.command == "flexsc study webserver specweb --cores all"
    assert bench.name == "webserver-specweb-cores-all"


def test_memory_stands_beside_the_paper_s(tmp_path: Path) -> None:
    run = calls()
    run["measurements"] = [
        measured(
            "memory",
            {"cores": cores, "mib": 256},
            {"plain_bytes_per_tick": rate, "vector_bytes_per_tick": 2 * rate},
        )
        for cores, rate in (("1", 4.0), ("1,0", 6.0))
    ]
    path = kept(tmp_path / "run.json", run)
    report(tmp_path, "--from", path)
    rows = recorded(tmp_path)["geneves-memory"]["rows"]
    assert [row["paper"]["value"] for row in rows] == ["4.8", "12.1"]
    assert {row["ours"] for row in rows} == {"1.50 (1.50-1.50) times with 2 cores"}


def test_settings_are_those_of_the_first_file(tmp_path: Path) -> None:
    run = calls()
    report(tmp_path, "--from", CALLS)
    old = recorded(tmp_path)["geneves-t1"]["rows"]
    assert {row["reason"] for row in old} == {"not recorded by this file"}
    run["machine"]["settings"] = {"net.core.somaxconn": "4096", "fs.file-max": None}
    path = kept(tmp_path / "run.json", run)
    report(tmp_path, "--from", path)
    found = {r["where"]: r for r in recorded(tmp_path)["geneves-t1"]["rows"]}
    assert found["net.core.somaxconn"]["ours"] == "4096"
    assert found["fs.file-max"]["reason"] == "this kernel has no such setting"


# Missing or broken values.


def test_without_matplotlib_there_are_tables_and_a_line(tmp_path: Path) -> None:
    page = report(tmp_path, "--from", CALLS)
    assert "<svg" not in page
    assert "matplotlib isn&#x27;t installed; it comes with Debian&#x27;s" in page
    assert list((tmp_path / "figures").iterdir()) == []


def broken(run: Json, how: str) -> None:
    for m in run["measurements"]:
        if how == "settings":
            del m["settings"]["batch"]
        if how == "rounds":
            m["rounds"] = []
        if how == "series":
            m["rounds"] = [{"samples": {}, "counts": {}}] * 3
        if how == "words":
            m["rounds"] = [{"samples": {"ns_per_call": ["x"]}, "counts": {}}]
    if how == "machine":
        run["machine"] = {}


@pytest.mark.parametrize("how", ["settings", "rounds", "series", "words", "machine"])
def test_an_old_file_is_a_sentence_on_the_page(tmp_path: Path, how: str) -> None:
    run = calls()
    broken(run, how)
    path = kept(tmp_path / "old.json", run)
    page = report(tmp_path, "--from", path)
    checked(page)
    if how == "machine":
        assert "another version described its machine" in page
        return
    assert recorded(tmp_path)["osdi-f9"]["state"] == "not measured"
    assert "old.json: values of this bench are missing; measure again" in page


def test_another_machine_is_marked(tmp_path: Path) -> None:
    run = calls()
    run["measurements"] = []
    run["machine"]["cpu"] = "Another"
    path = kept(tmp_path / "first.json", run)
    page = report(tmp_path, "--from", path, "--from", CALLS)
    assert "(another machine or revision)" in part(page, "osdi-f9")
    page = report(tmp_path, "--from", CALLS)
    assert "(another machine or revision)" not in page


# Measuring.

FLEXSC = """#!/bin/sh
echo "$@" >>{log}
[ "$1" = check ] && echo "uring: works" && exit
while [ "$1" != --out ]; do shift; done
{then}
"""


def flexsc(folder: Path, then: str) -> tuple[Path, Path]:
    log, path = folder / "log", folder / "flexsc"
    path.write_text(FLEXSC.format(log=log, then=then))
    path.chmod(0o755)
    return path, log


def test_what_is_missing_is_measured_once(tmp_path: Path) -> None:
    path, log = flexsc(tmp_path, f'cp {CALLS} "$2"')
    out = tmp_path / "out"
    args = ["--measure", "--flexsc", path, "--only", "osdi-f9,osdi-f10"]
    page = report(out, *args, "--quick")
    assert "uring: works" in page
    assert recorded(out)["osdi-f9"]["state"] == "measured"
    assert sorted(p.name for p in (out / "raw").iterdir()) == [
        "calls-quick.json",
        "check.txt",
    ]
    assert report(out, *args, "--quick") == page
    assert report(out, *args[3:]) == page
    said = [line for line in log.read_text().splitlines() if line != "check"]
    assert len(said) == 1
    assert said[0].startswith("bench calls --quick --out ")


def test_what_cannot_be_measured_is_a_reason_on_the_page(tmp_path: Path) -> None:
    then = 'echo "flexsc: bench: wrk isn\'t here" >&2; exit 1'
    path, _ = flexsc(tmp_path, then)
    out = tmp_path / "out"
    report(out, "--measure", "--flexsc", path, "--only", "osdi-f11,osdi-t1")
    figure = recorded(out)["osdi-f11"]
    assert (figure["state"], figure["rows"]) == ("not measured", [])
    assert figure["why"] == "wrk isn't here"
    assert [path.name for path in (out / "raw").iterdir()] == ["check.txt"]


def test_the_notes_of_a_run_without_measurements_are_its_reason(tmp_path: Path) -> None:
    run = calls()
    run["measurements"], run["notes"] = [], ["serve: wrk isn't installed"]
    kept(tmp_path / "empty.json", run)
    path, _ = flexsc(tmp_path, f'cp {tmp_path}/empty.json "$2"; exit 1')
    out = tmp_path / "out"
    report(out, "--measure", "--flexsc", path, "--only", "atc-f8")
    assert recorded(out)["atc-f8"]["why"] == "serve: wrk isn't installed"


def test_a_command_is_measured_once_for_all_its_figures() -> None:
    chosen = [figure for _, figure in figures.chosen([])]
    names = [bench.name for bench in measure.wanted(chosen, runs.Runs(), 2)]
    assert len(names) == len(set(names))
    assert {"calls", "programs-apache-worker-sweep-cores-all", "threads"} <= set(names)
    assert {"serve-sweep-cores-all", "programs-apache-entries-cores-all"} <= set(names)
    assert Bench(("overload", "events=a,b"), "overload").name == "overload-events-a,b"


# Drawings.


def with_drawings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    pytest.importorskip("matplotlib", reason="python3-matplotlib isn't installed")


def test_drawings_are_on_the_page_and_the_same_each_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with_drawings(monkeypatch)
    pages = [report(tmp_path / name, "--from", CALLS) for name in "ab"]
    assert pages[0] == pages[1]
    checked(pages[0])
    assert pages[0].count("<svg") == 2
    names = ["osdi-f10.png", "osdi-f10.svg", "osdi-f9.png", "osdi-f9.svg"]
    a, b = (tmp_path / name / "figures" for name in "ab")
    assert sorted(path.name for path in a.iterdir()) == names
    for name in names:
        assert (a / name).read_bytes() == (b / name).read_bytes()


def test_sweeps_are_drawn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with_drawings(monkeypatch)
    page = report(tmp_path, "--from", swept(tmp_path))
    checked(page)
    drawings = {p.stem for p in (tmp_path / "figures").iterdir()}
    assert drawings == {
        *["osdi-f11", "osdi-f12", "osdi-f13", "osdi-f16", "atc-f7", "atc-f8"]
    }
    svg = (tmp_path / "figures" / "osdi-f11.svg").read_text(encoding="utf-8")
    assert "hollow: the clients were the limit" in svg
    assert "gain: up to 1.86 times" in svg


def test_the_study_is_drawn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with_drawings(monkeypatch)
    checked(report(tmp_path, "--from", studied(tmp_path)))
    drawings = {p.stem for p in (tmp_path / "figures").iterdir()}
    assert drawings == {"geneves-f1", "atc-f9"}


def test_send_is_drawn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with_drawings(monkeypatch)
    run = calls()
    run["measurements"] = [asdict(m) for m in a_run().measurements]
    run["machine"]["models"] = a_run().machine["models"]
    checked(report(tmp_path, "--from", kept(tmp_path / "run.json", run)))
    svg = (tmp_path / "figures" / "send.svg").read_text(encoding="utf-8")
    for text in ("figure 4.5", "figure 4.10", "answers a second", "epoll, 1 KiB"):
        assert text in svg


def test_an_svg_on_the_page_has_ids_of_its_own() -> None:
    svg = (
        '<?xml version="1.0"?><svg xmlns="http://www.w3.org/2000/svg">'
        '<metadata>x</metadata><g id="a"/><use xlink:href="#a"/>'
        '<path clip-path="url(#a)" style="stroke: #000000"/></svg>'
    )
    assert draw.inline(svg, "f") == (
        '<svg><g id="f-a"/><use href="#f-a"/>'
        '<path clip-path="url(#f-a)" style="stroke: currentColor"/></svg>'
    )
