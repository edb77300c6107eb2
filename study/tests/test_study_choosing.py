# SPDX-License-Identifier: MIT
"""The study's answer: a table of gains by situation and model."""

from __future__ import annotations


import pytest
from flexbench.samples import Json, Measurement, Run, Settings
from flexstudy.webserver import choosing


def measured(
    bench: str, settings: Settings, series: dict[str, list[float]]
) -> Measurement:
    count = len(next(iter(series.values())))
    rounds: list[Json] = [
        {"samples": {name: [some[i]] for name, some in series.items()}, "counts": {}}
        for i in range(count)
    ]
    return Measurement(bench, settings, rounds)


def page(model: str, **series: list[float]) -> Measurement:
    settings: Settings = {"workload": "page", "connections": 128, "model": model}
    return measured("study", settings, series)


def cells(run: Run) -> dict[str, dict[str, str]]:
    """The table: cells by their row and model."""
    head, _, *rows = (
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in choosing.table(run)
    )
    names = [name.strip("`") for name in head[2:]]
    return {row[0]: dict(zip(names, row[2:], strict=True)) for row in rows}


def run_of(*found: Measurement) -> Run:
    return Run(machine={}, command=[], measurements=list(found))


def test_less_time_is_a_gain() -> None:
    run = run_of(
        page("events", cpu_us=[10.0, 10, 10]), page("loops", cpu_us=[8.0, 5, 4])
    )
    found = cells(run)["128 clients"]
    assert found["loops"] == "2.00 (1.25-2.50)"
    assert found["threads"] == choosing.NOTHING


def test_a_situation_without_events_is_left_out() -> None:
    assert cells(run_of(page("loops", cpu_us=[8.0]))) == {}


def test_a_model_with_fewer_rounds_has_no_ratio() -> None:
    run = run_of(page("events", cpu_us=[1.0, 1]), page("loops", cpu_us=[1.0]))
    assert cells(run)["128 clients"]["loops"] == choosing.NOTHING


def test_of_idle_clients_the_largest_number_counts() -> None:
    def idle(model: str, number: int, us: float) -> Measurement:
        settings: Settings = {"workload": "idle", "idle": number, "model": model}
        return measured("study-idle", settings, {"loaded_us": [us] * 3})

    run = run_of(
        *(idle("events", 0, 9), idle("loops", 0, 1)),
        *(idle("events", 9500, 10), idle("loops", 9500, 5)),
    )
    assert cells(run)["128 clients beside idle ones"]["loops"] == "2.00 (2.00-2.00)"


@pytest.mark.parametrize(("busy", "mark"), [(99.0, ""), (50.0, "\\*")])
def test_answers_are_marked_if_clients_were_the_limit(busy: float, mark: str) -> None:
    def offered(model: str, answers: float) -> Measurement:
        settings: Settings = {"workload": "pages", "times": "2", "model": model}
        settings["cores"] = 1
        series = {"answers_per_s": [answers] * 3, "busy_percent": [busy] * 3}
        found = measured("study-offered", settings, series)
        for one in found.rounds:
            one["counts"] = {"offered": 1000, "answered": answers}
        return found

    run = run_of(offered("events", 100), offered("loops", 150))
    found = cells(run)["twice what the best can answer"]["loops"]
    assert found == "1.50 (1.50-1.50)" + mark


def test_a_wrong_command_line_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    assert choosing.main([]) == 1
    assert choosing.main(["/nowhere/run.json"]) == 1
    said = capsys.readouterr().err.splitlines()
    assert said[0] == "flexsc: choosing: give files of flexsc study webserver --out"
    assert said[1].startswith("flexsc: choosing: /nowhere/run.json: ")
