# SPDX-License-Identifier: MIT
"""What the tests in virtual machines count as failed or as skipped.

These tests fetch nothing. They use the installed headers, and empty files instead of
programs.
"""

from __future__ import annotations

import argparse
import json
import platform
import re
import shutil
import sys
from pathlib import Path

import pytest


import chosen
import guest
import instructions
import kernels
import peers
import run
import runner
import sanitize
import suite

ROOT = Path(__file__).resolve().parents[2]

HEADERS = kernels.installed()


def no_kernel(*_: object) -> list[kernels.Kernel]:
    raise kernels.NoKernelError("there is no network in this test")


@pytest.fixture
def sources(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the module's sources, for the suite to build."""
    copy = tmp_path / "sources"
    for part in ("kmod", "include/uapi", "lib/calls"):
        shutil.copytree(ROOT / part, copy / part)
    monkeypatch.setattr(suite, "ROOT", copy)
    return copy


def run_suite(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *words: str
) -> tuple[int, Path]:
    work = tmp_path / "work"
    given = ["suite.py", "--build", str(tmp_path), "--work", str(work), *words]
    monkeypatch.setattr(suite, "backports", no_kernel)
    monkeypatch.setattr(suite, "newest", no_kernel)
    monkeypatch.setattr(sys, "argv", given)
    return suite.main(), work


def image_that_is_none(kernel: kernels.Kernel, work: Path, *_: object) -> Path:
    image = work / "vmlinuz"
    image.write_bytes(b"this doesn't boot\n" * 1000)
    return image


def dummy_program(tmp_path: Path) -> str:
    """A file in place of a program, for a guest that never starts."""
    program = tmp_path / "tests" / "kmod-interface"
    program.parent.mkdir()
    shutil.copy("/bin/true", program)
    return program.name


@pytest.mark.skipif(not HEADERS, reason="no linux-headers-*-cloud is installed")
def test_a_module_that_does_not_compile_has_failed(
    sources: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    with (sources / "kmod" / "main.c").open("a") as source:
        source.write("this is no C\n")
    status, _ = run_suite(tmp_path, monkeypatch, "--kernel", HEADERS[0].version)
    lines = capfd.readouterr().out.splitlines()
    assert status == 1
    assert lines[-1] == "0 passed, 1 failed, 2 skipped"
    assert any(line.startswith(f"FAILED {HEADERS[0].version}: make") for line in lines)


def test_a_guest_that_does_not_boot_has_failed(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    image = image_that_is_none(kernels.Kernel("", tmp_path), tmp_path)
    machine = guest.Guest(image)
    try:
        machine.qemu()
    except guest.NoGuestError as error:
        pytest.skip(str(error))
    monkeypatch.setattr(
        suite, "prepare", lambda *_: suite.Target("none", machine, tmp_path, seconds=20)
    )
    monkeypatch.setattr(suite, "release", lambda *_: [kernels.Kernel("none", tmp_path)])
    name = dummy_program(tmp_path)
    status, _ = run_suite(tmp_path, monkeypatch, name)
    assert status == 1
    assert capfd.readouterr().out.splitlines()[-1] == "0 passed, 1 failed, 2 skipped"


def test_a_source_excludes_kernels_of_other_sources(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in suite.SOURCES:
        found = [kernels.Kernel(name, tmp_path)]
        monkeypatch.setattr(suite, name, lambda *_, found=found: found)
    for name in suite.SOURCES:
        chosen = suite.kernels(platform.machine(), tmp_path, suite.Tally(), name)
        assert [kernel.version for kernel in chosen] == [name]
    every = suite.kernels(platform.machine(), tmp_path, suite.Tally())
    assert [kernel.version for kernel in every] == list(suite.SOURCES)


@pytest.mark.parametrize(
    ("said", "failed"),
    [
        ("== a\nok 1 - x\n1..1\n", 0),
        ("== a\nok 1 - x # SKIP y\n1..1\n", 0),
        ("== a\n1..0\n", 1),
        ("== a\nok 1 - x\n1..2\n", 1),
        ("== a\nok 1 - x\n", 1),
        ("== a\na: no such test: y\n", 1),
    ],
)
def test_a_program_without_a_test_has_failed(said: str, failed: int) -> None:
    tally = suite.Tally()
    assert suite.count(said, (), tally) == 1
    assert tally.failed == failed


def test_programs_that_never_begin_have_failed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = suite.Target("none", guest.Guest(tmp_path), tmp_path)
    monkeypatch.setattr(suite, "run_group", lambda *_: (127, "sh: not found\n", 0.0))
    assert suite.test(target, tmp_path, [("a", "b")], tmp_path) == suite.Tally(failed=1)


def test_a_missing_program_or_kernel_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(suite, "release", lambda *_: [kernels.Kernel("some", tmp_path)])
    with pytest.raises(SystemExit) as stopped:
        run_suite(tmp_path, monkeypatch, "kmod-nothing")
    assert stopped.value.code == 2
    assert run_suite(tmp_path, monkeypatch, "--kernel", "0.0")[0] == 1


def test_chosen_programs_exist() -> None:
    programs = suite.programs_of(suite.GROUPS)
    assert {*chosen.GUEST, *chosen.CROSS_GUEST} <= programs
    assert set(chosen.FEW_GUEST) <= set(chosen.GUEST)
    once = [
        f"{kind}-{name}"
        for kind, names in re.findall(r"(\w+)-\(([^)]*)\)", chosen.ONCE)
        for name in names.split("|")
    ]
    assert once and set(once) <= programs


def test_a_report_without_a_case_is_a_failure(tmp_path: Path) -> None:
    """No case is reported for a filter that matches nothing, or for a run that fails
    early.
    """
    report = tmp_path / "report.xml"
    for text, ok, failed in (
        ("<testsuites/>", True, 1),
        ("<testsuites><testcase/></testsuites>", True, 0),
        ("<testsuites><testcase/></testsuites>", False, 1),
        ("<testsuites><testcase><failure/></testcase></testsuites>", False, 1),
    ):
        report.write_text(text)
        step = run.Step("none", tmp_path / "log", run.Tally())
        step.count(report, ok)
        assert step.tally.failed == failed, text


def test_a_filter_of_peers_has_to_match(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(peers, "SUITES", {})
    monkeypatch.setattr(peers, "settle", lambda: None)
    given = argparse.Namespace(
        work=tmp_path, suite=None, filter="nothing", jobs=1, timeout=1.0, known=None
    )
    with pytest.raises(runner.PeersError, match="no test's name matches 'nothing'"):
        peers.run(given)


def test_results_of_one_kernel_are_kept_when_the_next_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    found = {
        "good": suite.Tally(passed=5, failed=2),
        "bad": kernels.KernelError("make: status 2"),
        "unknown": kernels.NoKernelError("apt has no source"),
    }

    def prepare(kernel: kernels.Kernel, *_: object) -> suite.Target:
        result = found[kernel.version]
        if isinstance(result, Exception):
            raise result
        return suite.Target(kernel.version, guest.Guest(tmp_path), tmp_path)

    monkeypatch.setattr(suite, "prepare", prepare)
    monkeypatch.setattr(suite, "test", lambda target, *_: found[target.name])
    monkeypatch.setattr(guest.Guest, "qemu", lambda _: "qemu")
    monkeypatch.setattr(
        suite, "release", lambda *_: [kernels.Kernel(name, tmp_path) for name in found]
    )
    status, _ = run_suite(tmp_path, monkeypatch)
    assert status == 1
    assert capfd.readouterr().out.splitlines()[-1] == "5 passed, 3 failed, 3 skipped"


def test_a_machine_without_sources_or_an_emulator_is_skipped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(suite, "release", no_kernel)
    assert run_suite(tmp_path, monkeypatch)[0] == suite.NO_KERNEL
    monkeypatch.setattr(suite, "release", lambda *_: [kernels.Kernel("some", tmp_path)])
    monkeypatch.setattr(
        suite,
        "prepare",
        lambda *_: suite.Target("some", guest.Guest(tmp_path), tmp_path),
    )
    monkeypatch.setenv("PATH", str(tmp_path))
    capfd.readouterr()
    assert run_suite(tmp_path, monkeypatch)[0] == suite.NO_KERNEL
    assert f"qemu-system-{platform.machine()} isn't installed" in capfd.readouterr().out


def test_a_package_that_apt_has_and_cannot_be_unpacked_has_failed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """This test replaces apt-get by a program whose downloads aren't packages."""
    tools = tmp_path / "bin"
    tools.mkdir()
    apt = tools / "apt-get"
    apt.write_text(
        "#!/bin/sh\ncase $* in *known*) ;; *) exit 100 ;; esac\n"
        "case $* in *--print-uris*) ;; *) echo none >known.deb ;; esac\n"
    )
    apt.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tools}:/usr/bin:/bin")
    with pytest.raises(kernels.NoKernelError):
        kernels.unpack(["other"], tmp_path, tmp_path / "root", [])
    with pytest.raises(kernels.KernelError):
        kernels.unpack(["known"], tmp_path, tmp_path / "root", [])


SUITES = {
    "all is well": ("print('9 passed, 0 failed, 2 skipped')", 0, (9, 0, 2)),
    "some failed": ("print('9 passed, 3 failed, 1 skipped')", 1, (9, 3, 1)),
    "nothing to try": ("print('skipped: flexsc run: no qemu')", 3, (0, 0, 1)),
    "it died": ("print('what is this?')", 1, (0, 1, 0)),
    "it says nothing": ("", 0, (0, 1, 0)),
    "status without a failure": (
        "print('9 passed, 0 failed, 0 skipped')",
        7,
        (9, 1, 0),
    ),
}


@pytest.mark.parametrize(("said", "status", "counts"), SUITES.values(), ids=SUITES)
def test_the_step_counts_the_suite_s_results(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    said: str,
    status: int,
    counts: tuple[int, int, int],
) -> None:
    program = tmp_path / "tests" / "kmod" / "vm" / "stub.py"
    program.parent.mkdir(parents=True)
    program.write_text(f"{said}\nraise SystemExit({status})\n")
    monkeypatch.setattr(run, "ROOT", tmp_path)
    log = tmp_path / "log"
    log.write_text("")
    step = run.Step("qemu", log, run.Tally())
    run.guests(step, "stub.py")
    tally = step.tally
    assert (tally.passed, tally.failed, tally.skipped) == counts


# The prefixes of the names of the programs in a folder.
FOLDERS = {
    "conformance": "lib",
    "kmod": "kmod",
    "events": "events",
    "stress": "lib/stress",
    "study": "../study/tests",
    "threads": "runtime/programs",
    "tests": "harness",
}


def test_programs_for_guests_exist() -> None:
    """A renamed program would otherwise fail only in the guests, which run seldom."""
    sources = {
        f"{prefix}-{path.stem}": path
        for prefix, folder in FOLDERS.items()
        for path in (ROOT / "tests" / folder).glob("*.c*")
    }
    wanted = suite.programs_of([*suite.GROUPS, *sanitize.MORE]) | sanitize.LATE
    assert {name for name in wanted - sources.keys() if name not in OTHERS} == set()


# Programs of several files, or programs that the build doesn't produce.
OTHERS = {"pairs", "kmod-calls", "kmod-run", "kmod-serve", "kmod-instructions"}


def test_instructions_are_added_to_a_file_in_place_of_older_ones(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    samples = {"clock_ticks": [14.0] * 3, "call_ticks": [355.0, 355.0, 900.0]}
    output = {"settings": {"call": "getppid"}, "samples": samples, "counts": {}}
    monkeypatch.setattr(
        instructions, "guest_output", lambda *_: ["6.1", json.dumps(output)]
    )
    path = tmp_path / "run.json"
    kept = {"bench": "footprint", "settings": {}, "rounds": []}
    path.write_text(json.dumps({"flexbench": 1, "measurements": [kept]}))
    for _ in range(2):
        words = ["--kernel", "vmlinuz", "--flexsc", "flexsc", str(path)]
        assert instructions.main(words) == 0
        assert capsys.readouterr().out.split() == ["getppid", "341"]
    first, one = json.loads(path.read_text())["measurements"]
    assert first == kept
    assert one["settings"] == {"call": "getppid", "kernel": "6.1"}
    assert one["rounds"] == [{"samples": samples, "counts": {}}]


def test_a_guest_that_ends_badly_is_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(guest.Guest, "run", lambda *_: guest.TIMEOUT)
    words = ["--kernel", "vmlinuz", "--flexsc", str(tmp_path / "flexsc")]
    assert instructions.main(words) == 1
    assert capsys.readouterr().err == "instructions.py: the guest ended with 124: \n"
