# SPDX-License-Identifier: MIT
"""The test suites: where they come from, how they are built, how each test runs, and
what its result means.

The sources are Debian's, fetched by apt with its own lists and configuration in the
work folder. Nothing on the machine changes. Existing files are kept.
"""

from __future__ import annotations

import platform
import re
import shlex
import shutil
import socket
import subprocess
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from runner import Command, Outcome, PeersError, Runner, SourceError

FETCH_LIMIT = 300.0
BUILD_LIMIT = 900.0
COMPILE_LIMIT = 60.0
LIST_LIMIT = 60.0

# The Debian package of each program.
PACKAGES = {
    "apt-get": "apt",
    "cc": "gcc",
    "cmake": "cmake",
    "dpkg-source": "dpkg-dev",
    "make": "make",
}

Words = Sequence[str | Path]


@dataclass(frozen=True)
class Test:
    """A test. Tests of one group never overlap."""

    name: str
    argv: Sequence[str]
    cwd: Path
    group: str
    env: Mapping[str, str] = field(default_factory=dict)

    def command(self, prefix: Sequence[str], limit: float) -> Command:
        return Command(
            self.name, [*prefix, *self.argv], self.cwd, limit, self.group, self.env
        )


def need(program: str) -> None:
    if shutil.which(program) is None:
        raise PeersError(
            f"{program} isn't installed; it comes with Debian's package "
            f"{PACKAGES[program]}"
        )


def mirror(release: str) -> str:
    """Return the address from which this machine gets the packages of the release."""
    fields = "$(RELEASE) $(COMPONENT) $(REPO_URI)"
    argv = ["apt-get", "indextargets", "--format", fields, "Created-By: Packages"]
    listing = subprocess.run(argv, capture_output=True, text=True, check=False)
    for line in listing.stdout.splitlines():
        if line.startswith(f"{release} main "):
            return line.split()[2]
    raise SourceError(f"apt has no packages of {release}: run apt-get update")


def check(
    runner: Runner,
    argv: Words,
    cwd: Path,
    limit: float,
    env: Mapping[str, str] | None = None,
) -> None:
    """Run a command that must succeed."""
    words = [str(word) for word in argv]
    outcome = runner.one(Command(words[0], words, cwd, limit, env=env or {}))
    if outcome.status is None:
        raise PeersError(f"{shlex.join(words)}: timed out after {limit:.0f} s")
    if outcome.status:
        raise PeersError(f"{shlex.join(words)}: failed:\n{outcome.output}")


class Suite(ABC):
    name: str
    package: str
    programs: tuple[str, ...] = ()

    def __init__(self, work: Path) -> None:
        self.work = work
        self.source = work / self.package

    @abstractmethod
    def build(self, runner: Runner, wanted: re.Pattern[str]) -> list[Test]: ...

    @abstractmethod
    def result(self, outcome: Outcome) -> str: ...

    def prepare(self, runner: Runner, wanted: re.Pattern[str]) -> list[Test]:
        for program in self.programs:
            need(program)
        if not self.source.exists():
            self.fetch(runner)
        return self.build(runner, wanted)

    def apt(self) -> list[str | Path]:
        """Return an apt-get command that uses the work folder only."""
        folder = self.work / "apt"
        for name in ("lists/partial", "cache/archives/partial"):
            (folder / name).mkdir(parents=True, exist_ok=True)
        release = platform.freedesktop_os_release()["VERSION_CODENAME"]
        sources = folder / "sources.list"
        sources.write_text(f"deb-src {mirror(release)} {release} main\n")
        options = {
            "Dir::Etc::sourcelist": sources,
            "Dir::Etc::sourceparts": "/dev/null",
            "Dir::State::lists": folder / "lists",
            "Dir::Cache": folder / "cache",
            "APT::Sandbox::User": "root",
        }
        words: list[str | Path] = ["apt-get", "-q"]
        for key, value in options.items():
            words += ["-o", f"{key}={value}"]
        return words

    def fetch(self, runner: Runner) -> None:
        """A rename at the end makes the source either complete or absent."""
        need("apt-get")
        need("dpkg-source")
        apt = self.apt()
        folder = self.work / f"{self.package}.new"
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        try:
            check(runner, [*apt, "update"], self.work, FETCH_LIMIT)
            check(runner, [*apt, "source", self.package], folder, FETCH_LIMIT)
        except PeersError as error:
            raise SourceError(f"{self.package}: {error}") from error
        found = [path for path in folder.iterdir() if path.is_dir()]
        if len(found) != 1:
            raise PeersError(f"apt-get source {self.package}: no source in {folder}")
        found[0].rename(self.source)
        shutil.rmtree(folder)


class Posix(Suite):
    """The Open POSIX Test Suite: the parts that a runtime for threads may affect, which
    are threads, semaphores, signals, processes, time, and waits.

    A test is a program N-M.c, or a script that runs a program with a number.
    Programs find their files, and each other, from the suite's top folder. Tests of
    one interface use the same names of files and semaphores.
    """

    name = "posix"
    package = "posixtestsuite"
    programs = ("cc",)

    FAMILIES: tuple[str, ...] = (
        "pthread_*",
        "sem_*",
        "sig*",
        "kill*",
        "raise*",
        "fork*",
        "nanosleep",
        "clock*",
        "timer_*",
        "time",
        "sched_*",
        "mq_*",
        "aio_*",
        "lio_listio",
        "m*map",
        "m*lock*",
        "shm_*",
        "fsync",
        "getpid",
    )
    FLAGS = (
        "-std=gnu99",
        "-O0",
        "-w",
        "-D_POSIX_C_SOURCE=200112L",
        "-D_GNU_SOURCE",
        "-pthread",
    )
    SCRIPTED = re.compile(r"^(conformance/interfaces/\S+)\.test (\d+)$", re.MULTILINE)
    SUFFIX = ".test"
    RESULTS = {0: "PASS", 1: "FAIL", 2: "UNRESOLVED", 4: "UNSUPPORTED", 5: "UNTESTED"}

    def result(self, outcome: Outcome) -> str:
        if outcome.status is None:
            return "TIMEOUT"
        # A prefix may report a signal as shells do.
        if outcome.status < 0 or outcome.status > 128 and outcome.status != 255:
            return "CRASH"
        return self.RESULTS.get(outcome.status, "FAIL")

    def build(self, runner: Runner, wanted: re.Pattern[str]) -> list[Test]:
        tests = [test for test in self._listed() if wanted.search(test.name)]
        programs = {Path(test.argv[0]) for test in tests} | self._helpers()
        missing = [path for path in programs if not path.exists()]
        compiled = runner.all([self._compile(path) for path in missing])
        for path in missing:
            if compiled[str(path)].status == 0:
                Path(f"{path}.new").rename(path)
        # Some tests can't be built.
        return [test for test in tests if Path(test.argv[0]).exists()]

    def _listed(self) -> list[Test]:
        top = self.source / "conformance" / "interfaces"
        found = []
        for folder in sorted({path for f in self.FAMILIES for path in top.glob(f)}):
            paths = [p for p in folder.rglob("*") if p.suffix in (".c", ".sh")]
            for path in sorted(paths):
                if re.fullmatch(r"[0-9]+-[0-9]+", path.stem):
                    name = path.relative_to(top).with_suffix("")
                    found += self._test(f"{self.name}/{name}", path, folder.name)
        return found

    def _test(self, name: str, path: Path, interface: str) -> list[Test]:
        argv = [str(path.with_suffix(self.SUFFIX))]
        if path.suffix == ".sh":
            # The other scripts only print that there is nothing to run.
            script = self.SCRIPTED.search(path.read_text(errors="replace"))
            if not script:
                return []
            argv = [f"{self.source / script[1]}{self.SUFFIX}", script[2]]
        return [Test(name, argv, self.source, f"{self.name}/{interface}")]

    def _helpers(self) -> set[Path]:
        """Programs that a test executes."""
        top = self.source / "conformance" / "interfaces"
        return {
            path.with_suffix(self.SUFFIX) for path in top.glob("sig*/*-buildonly.c")
        }

    def _compile(self, program: Path) -> Command:
        source = program.with_suffix(".c")
        argv = ["cc", *self.FLAGS, f"-I{self.source / 'include'}", str(source)]
        argv += ["-o", f"{program}.new", "-lrt"]
        return Command(str(program), argv, self.source, COMPILE_LIMIT, str(program))


class Libuv(Suite):
    """libuv's own tests. For one test, its runner starts the test and the servers that
    it needs. All tests use the same ports and files, so only one runs at a time, on
    the whole machine.
    """

    name = "libuv"
    package = "libuv1"
    programs = ("cc", "cmake", "make")

    # The runner ends most tests after five seconds, times this factor, which Debian's
    # build sets, too.
    ENV = {"UV_RUN_AS_ROOT": "1", "UV_TEST_TIMEOUT_MULTIPLIER": "2"}
    RESULTS = {0: "PASS", 7: "SKIP"}

    def result(self, outcome: Outcome) -> str:
        if outcome.status is None or "\n# timeout\n" in outcome.output:
            return "TIMEOUT"
        if outcome.status < 0:
            return "CRASH"
        return self.RESULTS.get(outcome.status, "FAIL")

    def build(self, runner: Runner, wanted: re.Pattern[str]) -> list[Test]:
        self._alone()
        folder = self.work / "libuv-build"
        program = folder / "uv_run_tests"
        if not program.exists():
            kind = "-DCMAKE_BUILD_TYPE=RelWithDebInfo"
            target = ("--target", program.name, f"-j{runner.jobs}")
            setup: Words = ("cmake", "-S", self.source, "-B", folder, kind)
            build: Words = ("cmake", "--build", folder, *target)
            check(runner, setup, self.work, BUILD_LIMIT)
            check(runner, build, self.work, BUILD_LIMIT)
        return [t for t in self._listed(runner, program) if wanted.search(t.name)]

    def _alone(self) -> None:
        """Take an abstract socket as a lock, which ends with this process."""
        self.lock = socket.socket(socket.AF_UNIX)
        try:
            self.lock.bind("\0flexsc-peers-libuv")
        except OSError:
            raise PeersError("another process is running libuv's tests here") from None

    def _listed(self, runner: Runner, program: Path) -> list[Test]:
        # A command's output is cut to a size below that of this list, so use a file.
        listing = self.work / "libuv-tests.txt"
        argv: Words = ["sh", "-c", 'exec "$0" --list > "$1"', program, listing]
        check(runner, argv, self.source, LIST_LIMIT, self.ENV)
        names = [line.split()[0] for line in listing.read_text().splitlines() if line]
        return [
            Test(
                f"{self.name}/{name}",
                [str(program), name],
                self.source,
                self.name,
                self.ENV,
            )
            for name in names
        ]


SUITES: dict[str, type[Suite]] = {"posix": Posix, "libuv": Libuv}
