# SPDX-License-Identifier: MIT
"""The programs of flexsc study run on all cores of --cores. No server runs: the tests
read the commands.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from bench_runs import plan
from flexbench import examples, servers, tools
from flexbench.machine import Cores
from flexbench.samples import Run
from flexstudy import apache, programs
from flexstudy.threaded import Variant

TWO = replace(plan(), cores=Cores(measured=5, other=4, load=[0, 1], more=[3]))
EVERY = [
    pytest.param(name, variant, id=f"{name}-{variant.name}")
    for name, kind in programs.KINDS.items()
    for variant in kind.with_remote().variants
]


class NotStarted(Exception):
    """Raised instead of starting a server."""


@pytest.fixture
def commands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """The commands of servers, none of which starts."""
    found: list[list[str]] = []

    @contextmanager
    def process(name: str, words: list[str], *_: Any, **__: Any) -> Iterator[None]:
        found.append(words)
        raise NotStarted
        yield

    (tmp_path / "base" / "data").mkdir(parents=True)
    for mpm in ("event", "worker"):
        (tmp_path / f"mod_mpm_{mpm}.so").touch()
    monkeypatch.setattr(apache, "MODULES", tmp_path)
    monkeypatch.setattr(examples, "find", lambda _, name, *__: tmp_path / name)
    monkeypatch.setattr(tools, "need", lambda name: name)
    monkeypatch.setattr(servers, "process", process)
    return found


@pytest.mark.parametrize(("name", "variant"), EVERY)
def test_a_program_has_all_cores_of_the_server(
    tmp_path: Path, commands: list[list[str]], name: str, variant: Variant
) -> None:
    base, own = tmp_path / "base", tmp_path / "own"
    own.mkdir()
    with (
        pytest.raises(NotStarted),
        programs.KINDS[name].start(TWO, variant, base, own, 8),
    ):
        pass
    (words,) = commands
    assert words[:3] == ["taskset", "-c", "5,3"]
    options = {"native": "", "flexsc": "flexsc run --carriers 2 -- "}[variant.way]
    if variant.remote:
        options = "flexsc run --kernel-cores 3 -- "
    program = {"apache": "apache2", "mariadb": "mariadbd", "java": "java"}.get(name)
    rest = " ".join(words[3:])
    assert rest.startswith(options + (program or f"{tmp_path}/http-pool")), rest


@pytest.mark.parametrize("name", programs.KINDS)
def test_a_program_s_settings_have_its_number_of_cores(name: str) -> None:
    kind = programs.KINDS[name]
    for one, count in ((TWO, 2), (plan(), 1)):
        for mode in kind.modes:
            found = programs.settings(one, name, mode, kind.variants[0])
            assert found["cores"] == count


def test_only_several_cores_have_calls_elsewhere(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    names: list[str] = []

    @contextmanager
    def started(plan: Any, kind: Any) -> Iterator[dict[str, Any]]:
        names.extend(variant.name for variant in kind.variants)
        yield {}

    monkeypatch.setattr(programs, "started", started)
    monkeypatch.setattr(programs, "compare", lambda *_: None)
    for one in (plan(), TWO):
        programs.measure(Run({}, []), replace(one, words=["mariadb:connection"]))
    both = ["native", "flexsc"]
    assert names == [*both, *both, "flexsc-remote"]
