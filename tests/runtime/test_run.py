# SPDX-License-Identifier: MIT
"""flexsc run as its users see it: what it passes through unchanged, and what it
refuses.
"""

from __future__ import annotations

import ctypes
import errno
import os
import re
import resource
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import filters
import pytest

from fixtures import PATIENCE, command, eventually
from programs import CARRIED, WAYS, Program, launcher, started
from test_serve_process import IO_URING_SETUP, KILLED, REFUSED

Done = subprocess.CompletedProcess[str]
NOBODY = 65534

# Starts a thread, so that the runtime starts; the test's script follows.
THREADED = """
import os, signal, sys, threading, time
thread = threading.Thread(target=time.sleep, args=(0.01,))
thread.start()
thread.join()
"""


def python(script: str) -> list[str]:
    # Python 3.12 and later warn about fork() in a process with threads.
    return [sys.executable, "-S", "-W", "ignore", "-c", THREADED + script]


def run(
    *arguments: str,
    text: str = "",
    env: dict[str, str] | None = None,
    user: int | None = None,
    cwd: Path | None = None,
    before: Callable[[], None] | None = None,
) -> Done:
    """Execute flexsc run with these arguments."""
    return subprocess.run(
        [command(), "run", *arguments],
        input=text,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        env={**os.environ, **(env or {})},
        user=user,
        cwd=cwd,
        preexec_fn=before,
    )


def under(way: str, argv: list[str], text: str = "") -> Done:
    return subprocess.run(
        [*launcher(way), *argv],
        input=text,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )


NOTHING = "int main(void) { return 0; }\n"

PLAIN_THREADS = r"""
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

static int ends[2];

static void *receive(void *arg)
{
	char c;

	return read(ends[0], &c, 1) == 1 ? arg : NULL;
}

int main(void)
{
	pthread_t threads[4];

	if (pipe(ends))
		return 1;
	for (int i = 0; i < 4; i++)
		pthread_create(&threads[i], NULL, receive, ends);
	if (write(ends[1], "text", 4) != 4)
		return 1;
	for (int i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
	puts("right");
	return 7;
}
"""


def compiled(folder: Path, *options: str, text: str = NOTHING, by: str = "cc") -> str:
    """Compile a program with these options: one that does nothing, or "text"."""
    compiler = shutil.which(by)
    if compiler is None:
        pytest.skip(f"{by} is missing: install gcc, musl-tools")
    (folder / "nothing.c").write_text(text)
    argv = [compiler, "-o", "nothing", "nothing.c", *options]
    done = subprocess.run(
        argv, cwd=folder, capture_output=True, text=True, timeout=PATIENCE, check=False
    )
    if done.returncode != 0:
        pytest.skip(f"cc {' '.join(options)} doesn't work here: {done.stderr}")
    return str(folder / "nothing")


# What passes through unchanged


@pytest.mark.parametrize("way", WAYS)
def test_the_exit_status_is_the_program_s(way: str) -> None:
    done = under(way, python("sys.exit(7)"))
    assert (done.returncode, done.stdout, done.stderr) == (7, "", "")
    done = under(way, python("threading.Thread(target=os._exit, args=(8,)).start()"))
    assert (done.returncode, done.stdout, done.stderr) == (8, "", "")


@pytest.mark.parametrize("way", WAYS)
def test_signals_end_the_program_as_natively(way: str) -> None:
    for signo in (signal.SIGTERM, signal.SIGKILL, signal.SIGHUP):
        done = under(way, python(f"os.kill(os.getpid(), {signo})\ntime.sleep(10)"))
        assert (done.returncode, done.stdout, done.stderr) == (-signo, "", "")
    done = under(way, python("os.abort()"))
    assert done.returncode == -signal.SIGABRT


@pytest.mark.parametrize("way", WAYS)
def test_signals_reach_the_program_s_handlers(way: str, tmp_path: Path) -> None:
    """Signals from outside, while main and other threads wait in different calls."""
    script = """
def print_signal(signo, frame):
    print("got", signo, flush=True)
    if signo == signal.SIGTERM:
        sys.exit(3)
for signo in (signal.SIGTERM, signal.SIGUSR1):
    signal.signal(signo, print_signal)
for work in (lambda: time.sleep(100), threading.Event().wait, lambda: os.read(r, 1)):
    r, w = os.pipe()
    threading.Thread(target=work, daemon=True).start()
print("ready", flush=True)
lock = threading.Lock()
lock.acquire()
lock.acquire()
"""
    log = tmp_path / "log"
    with started(Program(way, python(script), log)) as program:
        program.wait_until(lambda: program.output() == "ready\n")
        program.send(signal.SIGUSR1)
        wanted = f"ready\ngot {int(signal.SIGUSR1)}\n"
        program.wait_until(lambda: program.output() == wanted)
        assert program.stop() == 3
        assert program.output() == wanted + f"got {int(signal.SIGTERM)}\n"


@pytest.mark.parametrize("way", WAYS)
def test_children_have_a_small_descriptor_table(way: str) -> None:
    """fork() copies the table, up to the highest descriptor."""
    script = """
import resource
most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
os.execv(sys.executable, [sys.executable, "-S", "-c", sys.argv[1]])
"""
    inner = """
import os, threading
thread = threading.Thread(target=print)
thread.start()
thread.join()
for line in open("/proc/self/status"):
    if line.startswith("FDSize"):
        print(line)
"""
    done = under(way, [*python(script), inner])
    assert done.returncode == 0 and done.stderr == ""
    assert int(done.stdout.split()[-1]) <= 4096


@pytest.mark.parametrize("way", WAYS)
def test_input_and_output_are_the_program_s(way: str) -> None:
    script = """
def copy():
    for line in sys.stdin:
        print(line, end="")
        print(line.upper(), end="", file=sys.stderr)
thread = threading.Thread(target=copy)
thread.start()
thread.join()
"""
    text = "".join(f"line {i}\n" for i in range(5000))
    done = under(way, python(script), text)
    assert done.stdout == text
    assert done.stderr == text.upper()
    assert done.returncode == 0


def test_without_options_the_program_behaves_the_same() -> None:
    done = run(*python("print(sys.argv[1:])"), "-c", "--help", "--", "x")
    assert (done.stdout, done.stderr) == ("['-c', '--help', '--', 'x']\n", "")
    done = run("--", "sh", "-c", 'echo "$0 $1"', "zero", "--engine")
    assert (done.stdout, done.stderr) == ("zero --engine\n", "")


def test_the_engine_is_the_one_asked_for() -> None:
    script = """
count = 0
for name in os.listdir("/proc/self/fd"):
    try:
        count += "[io_uring]" in os.readlink("/proc/self/fd/" + name)
    except OSError:
        pass
print(count)
"""
    assert run("--engine", "threads", "-c", "3", *python(script)).stdout == "0\n"
    done = run("--engine", "uring", "-c", "3", *python(script))
    if "doesn't work here" in done.stderr:
        pytest.skip(done.stderr)
    # One ring for each carrier, and one for the spare.
    assert done.stdout == "4\n"


def test_other_preloaded_libraries_stay() -> None:
    done = run("sh", "-c", "echo $LD_PRELOAD", env={"LD_PRELOAD": "libm.so.6"})
    first, _, rest = done.stdout.partition(":")
    assert first.endswith("/libflexsc-runtime.so")
    assert (rest, done.stderr) == ("libm.so.6\n", "")


# Programs that are scripts, or that start others


@pytest.mark.parametrize("way", CARRIED)
def test_scripts_are_programs(way: str, tmp_path: Path) -> None:
    with_line = tmp_path / "with"
    with_line.write_text(f"#!{sys.executable} -S\n{THREADED}\nsys.exit(len(sys.argv))")
    without_line = tmp_path / "without"
    without_line.write_text(f'"{with_line}" a b c; exit $?')
    for script in (with_line, without_line):
        script.chmod(0o755)
    assert under(way, [str(with_line), "a", "b"]).returncode == 3
    done = under(way, [str(without_line)])
    assert (done.returncode, done.stdout, done.stderr) == (4, "", "")


@pytest.mark.parametrize("way", CARRIED)
def test_children_run_the_same_way(way: str) -> None:
    """Children of the main thread and of others, by fork, exec and spawn."""
    script = """
import subprocess
child = [sys.executable, "-S", "-c", '''
import sys, threading
thread = threading.Thread(target=print, args=("child",), kwargs={"flush": True})
thread.start()
thread.join()
print("libflexsc-runtime" in open("/proc/self/maps").read())
sys.exit(5)
''']
def work():
    done = subprocess.run(child, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout, done.stderr) == (5, "child\\nTrue\\n", "")
    pid = os.posix_spawn(child[0], child, os.environ,
        file_actions=[(os.POSIX_SPAWN_OPEN, 1, "/dev/null", os.O_WRONLY, 0)])
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 5
    pid = os.fork()
    if pid == 0:
        thread = threading.Thread(target=time.sleep, args=(0.01,))
        thread.start()
        thread.join()
        os._exit(6)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 6
    right.append(1)
right = []
threads = [threading.Thread(target=work) for _ in range(5)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
work()
print(len(right), flush=True)
threading.Thread(target=os.execv, args=(child[0], child)).start()
time.sleep(100)
"""
    done = under(way, python(script))
    assert (done.stdout, done.stderr) == ("6\nchild\nTrue\n", "")
    assert done.returncode == 5


# Missing features and resources


NO_IO_URING = pytest.mark.parametrize("before", [REFUSED, KILLED])


@NO_IO_URING
def test_without_io_uring_the_engine_is_threads(before: Callable[[], None]) -> None:
    done = run(*python("print('right'); sys.exit(7)"), before=before)
    assert (done.returncode, done.stdout) == (7, "right\n")
    assert done.stderr.startswith("flexsc: run: ") and "seccomp" in done.stderr
    assert done.stderr.count("\n") == 1


@NO_IO_URING
def test_without_io_uring_the_engine_uring_is_refused(
    before: Callable[[], None],
) -> None:
    argv = ("--engine", "uring", *python("print('wrong')"))
    done = run(*argv, before=before)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("flexsc: run: engine uring doesn't work here: ")
    assert "seccomp" in done.stderr
    assert done.stderr.count("\n") == 1


def test_without_the_decoder_libc_is_not_patched(tmp_path: Path) -> None:
    for version in ("4.0", "4.1"):
        (tmp_path / f"libZydis.so.{version}").touch()
    env = {"LD_LIBRARY_PATH": str(tmp_path)}
    done = run(*python("print('right'); sys.exit(7)"), env=env)
    assert (done.returncode, done.stdout) == (7, "right\n")
    assert done.stderr.startswith("flexsc: run: libc can't be patched")
    assert re.search(r": libZydis\.so\.4\.\d is missing\n$", done.stderr)
    assert done.stderr.count("\n") == 1


def test_under_valgrind_there_are_plain_threads(tmp_path: Path) -> None:
    if shutil.which("valgrind") is None:
        pytest.skip("valgrind is missing: install valgrind")
    program = compiled(tmp_path, text=PLAIN_THREADS)
    done = run("valgrind", "-q", program)
    assert (done.returncode, done.stdout) == (7, "right\n")
    assert done.stderr.startswith("flexsc: run: running natively: valgrind ")
    assert done.stderr.count("\n") == 1


def test_a_program_sets_a_filter_that_kills_at_io_uring() -> None:
    """The process installs the filter itself, before its first thread."""
    script = f"""
import sys, threading
sys.path.append({str(Path(filters.__file__).parent)!r})
import filters
filters.forbidden({IO_URING_SETUP}, action=filters.KILL)()
thread = threading.Thread(target=print, args=("right",))
thread.start()
thread.join()
"""
    done = run(sys.executable, "-S", "-c", script)
    assert (done.returncode, done.stdout) == (0, "right\n")
    assert done.stderr.startswith("flexsc: run: using syscall threads: uring: ")
    assert "a seccomp filter ends a process" in done.stderr


@pytest.mark.parametrize(
    ("engine", "action", "word"),
    [
        ("kmod", None, "kmod: /dev/flexsc doesn't exist"),
        ("kmod", filters.KILL, "kmod: /dev/flexsc doesn't exist"),
        ("uring", filters.FAIL, "uring: a seccomp filter forbids io_uring"),
        ("uring", filters.KILL, "uring: a seccomp filter ends a process"),
        ("fast", None, "fast: Invalid argument"),
    ],
)
def test_threads_replace_an_engine_that_does_not_work(
    engine: str, action: int | None, word: str
) -> None:
    """Only the program's environment has the engine, so flexsc run doesn't try it."""
    if engine == "kmod" and Path("/dev/flexsc").exists():
        pytest.skip("has the module")
    script = f"""
import sys, threading
sys.path.append({str(Path(filters.__file__).parent)!r})
import filters
if {action}:
    filters.forbidden({IO_URING_SETUP}, {errno.EPERM}, {action})()
thread = threading.Thread(target=print, args=("right",))
thread.start()
thread.join()
"""
    variable = f"FLEXSC_ENGINE={engine}"
    done = run("--stats", "env", variable, sys.executable, "-S", "-c", script)
    assert (done.returncode, done.stdout) == (0, "right\n")
    message, stats, *_ = done.stderr.splitlines()
    assert message.startswith(f"flexsc: run: using syscall threads: {word}")
    assert stats.endswith("engine threads")
    assert done.stderr.count("flexsc: ") == 1


# Users without other processes: the limit applies to all rings of a user. The kernel
# frees the memory of a ring a while after its process has ended.
POOR = 100_000 + 8 * os.getpid()
LIMITS = (0, 16, 64, 256, 1024)


@pytest.mark.parametrize("kb", LIMITS)
def test_with_little_locked_memory_there_are_few_carriers(kb: int) -> None:
    if os.geteuid() != 0:
        pytest.skip("needs root, to become a user without other processes")
    folder = Path(command()).resolve().parent
    if not all(path.stat().st_mode & 1 for path in (folder, *folder.parents)):
        pytest.skip(f"other users can't access {folder}")

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_MEMLOCK, (kb * 1024, kb * 1024))

    # Another user may be unable to execute this Python.
    system_s = shutil.which("python3", path="/usr/bin:/bin")
    if system_s is None:
        pytest.skip("no python3 in /usr/bin")
    script = python("print('right'); sys.exit(7)")[1:]
    argv = ("-c", "4", "--stats", system_s, *script)
    user = POOR + LIMITS.index(kb)
    tries: list[Done] = []

    def is_limited() -> bool:
        """Return false if the command's own ring, not yet freed, took the memory."""
        words = ("--engine", "uring", *argv)
        tries.append(run(*words, user=user, cwd=Path("/"), before=limit))
        return "engine threads" not in tries[-1].stderr

    assert eventually(is_limited), tries[-1].stderr
    done = tries[-1]
    lines = done.stderr.splitlines()
    if done.returncode == 2:
        assert kb < 16 and len(lines) == 1 and "RLIMIT_MEMLOCK" in lines[0]
        done = run(*argv, user=user, cwd=Path("/"), before=limit)
        assert "engine threads" in done.stderr
    else:
        some = re.search(r"carriers: ([1-4]), engine uring", done.stderr)
        assert some, done.stderr
        assert (some[1] == "4") == (" of 4 carriers: no memory" not in lines[0])
    assert (done.returncode, done.stdout) == (7, "right\n")


UNPATCHED = "flexsc: run: libc can't be patched, so locks block kernel threads: "


def keep_text_as_it_is() -> None:
    """PR_SET_MDWE: mappings of the process can't become executable later."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(65, 1, 0, 0, 0):
        raise OSError(ctypes.get_errno(), "PR_SET_MDWE")


def test_if_libc_cannot_be_patched_threads_wait_on_their_hosts() -> None:
    script = """
threads = [threading.Thread(target=time.sleep, args=(0.01,)) for _ in range(20)]
for thread in threads:
    thread.start()
lock = threading.Condition()
with lock:
    assert not lock.wait(0.01)
r, w = os.pipe()
threading.Timer(0.01, os.write, (w, b"right")).start()
print(os.read(r, 10).decode())
for thread in threads:
    thread.join()
sys.exit(7)
"""
    try:
        done = run("--stats", *python(script), before=keep_text_as_it_is)
    except subprocess.SubprocessError:
        pytest.skip("no PR_SET_MDWE: needs Linux 6.3")
    assert (done.returncode, done.stdout) == (7, "right\n")
    line, *report = done.stderr.splitlines()
    assert line.startswith(UNPATCHED) and "MemoryDenyWriteExecute=" in line
    assert report[0].startswith("flexsc run: python")
    counted = {words[0]: int(words[1]) for words in map(str.split, report[1:24])}
    assert counted["threads"] > 20
    assert counted["slept"] > 15
    assert counted["futex_waits"] == 0


# Messages of the command


def test_the_help_fits_a_screen() -> None:
    for option in ("-h", "--help"):
        done = run(option)
        lines = done.stdout.splitlines()
        assert (done.returncode, done.stderr) == (0, "")
        assert lines[0].startswith("usage: flexsc run ")
        assert len(lines) <= 24
        assert max(len(line) for line in lines) <= 80


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        (["-c", "0"], "--carriers 0: give a number from 1 to 1024"),
        (["-c", "1025"], "--carriers 1025: "),
        (["-c", "-1"], "--carriers -1: "),
        (["--carriers", "two"], "--carriers two: "),
        (["--carriers=4x"], "--carriers 4x: "),
        (["--carriers="], "--carriers : "),
        (["-c", "99999999999999999999999"], "--carriers 9999"),
        (["--entries", "0"], "--entries 0: give a number from 1 to "),
        (["--entries", "2000000"], "--entries 2000000: "),
        (["--engine", "fast"], "--engine fast: give uring, threads or kmod"),
        (["--engine", "sync"], "--engine sync: give uring, threads or kmod"),
        (["--without", "all"], "--without all: give loops, sticky or patch"),
        (["--bogus"], "unrecognized option '--bogus'"),
        (["-x"], "invalid option -- 'x'"),
        (["--carriers"], "option '--carriers' requires an argument"),
    ],
)
def test_bad_options_are_refused(arguments: list[str], word: str) -> None:
    program = [] if arguments == ["--carriers"] else ["echo", "wrong"]
    done = run(*arguments, *program)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("flexsc: run: ")
    assert word in done.stderr
    assert done.stderr.count("\n") <= 2


@pytest.mark.parametrize("name", ["sync", "fast"])
def test_an_invalid_engine_in_the_environment_is_refused(name: str) -> None:
    done = run("echo", "wrong", env={"FLEXSC_ENGINE": name})
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == (
        f"flexsc: run: FLEXSC_ENGINE={name}: give uring, threads or kmod\n"
    )


@pytest.mark.skipif(Path("/dev/flexsc").exists(), reason="has the module")
def test_the_module_is_missing() -> None:
    for words, env, status in (
        (["--engine", "kmod"], {}, 2),
        ([], {"FLEXSC_ENGINE": "kmod"}, 1),
    ):
        done = run(*words, "echo", "wrong", env=env)
        assert (done.returncode, done.stdout) == (status, "")
        assert done.stderr.startswith("flexsc: run: engine kmod doesn't work here: ")


@pytest.mark.parametrize("value", ["-1", "0", "1025", "4294967295", "2x", ""])
def test_a_wrong_number_of_carriers_is_named(value: str) -> None:
    done = run(*python("print('right')"), env={"FLEXSC_CARRIERS": value})
    assert done.stdout == "right\n"
    assert done.stderr == (
        "flexsc: run: FLEXSC_CARRIERS: not a number from 1 to 1024; ignored\n"
    )


def test_a_missing_program_is_reported() -> None:
    done = run("-c", "2")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("flexsc: run: missing program")
    assert done.stderr.count("\n") == 1


def refused(done: Done, status: int, *words: str) -> None:
    """The command refuses, with one line that states the reason."""
    assert (done.returncode, done.stdout) == (status, "")
    assert done.stderr.startswith("flexsc: run: ")
    assert done.stderr.count("\n") == 1
    for word in words:
        assert word in done.stderr


def test_a_program_that_cannot_be_executed_is_refused(tmp_path: Path) -> None:
    (tmp_path / "text").write_text("text")
    for missing in (str(tmp_path / "none"), "none-such-program", ""):
        refused(run(missing), 127, missing, "No such file")
    for other in (tmp_path, tmp_path / "text"):
        refused(run(str(other)), 126, str(other), "Permission denied")


@pytest.mark.parametrize(
    ("compiler", "option"),
    [("cc", "-static"), ("cc", "-static-pie"), ("musl-gcc", "-static")],
)
def test_a_static_program_is_refused(
    tmp_path: Path, compiler: str, option: str
) -> None:
    program = compiled(tmp_path, option, by=compiler)
    refused(run(program), 126, program, "statically linked", "dynamically")


def test_a_program_with_another_libc_is_refused(tmp_path: Path) -> None:
    program = compiled(tmp_path, by="musl-gcc")
    assert subprocess.run([program], check=False).returncode == 0
    refused(run(program), 126, program, "another libc", "musl")


@pytest.mark.parametrize("kind", ["address", "thread"])
def test_a_sanitizer_s_build_is_refused(tmp_path: Path, kind: str) -> None:
    program = compiled(tmp_path, f"-fsanitize={kind}")
    refused(run(program), 126, program, "sanitizer")


def test_another_machine_s_program_is_refused(tmp_path: Path) -> None:
    data = bytearray(Path(sys.executable).read_bytes()[:4096])
    struct.pack_into("<H", data, 18, 8)
    program = tmp_path / "mips"
    program.write_bytes(data)
    program.chmod(0o755)
    refused(run(str(program)), 126, str(program), "another architecture")


def test_a_program_that_gains_rights_is_refused() -> None:
    if os.geteuid() != 0:
        pytest.skip("needs root, to make another user's set-user-ID program")
    folder = Path(command()).resolve().parent
    if not all(path.stat().st_mode & 1 for path in (folder, *folder.parents)):
        pytest.skip(f"the user nobody can't access {folder}")
    true = shutil.which("true")
    assert true is not None
    with tempfile.TemporaryDirectory(prefix="flexsc-run-") as name:
        Path(name).chmod(0o755)
        program = Path(name) / "gains"
        shutil.copy(true, program)
        program.chmod(0o755)
        assert run(str(program), user=NOBODY, cwd=Path(name)).returncode == 0
        program.chmod(0o4755)
        refused(run(str(program), user=NOBODY, cwd=Path(name)), 126, "set-user-ID")
        # Root gains no rights by it.
        assert run(str(program)).returncode == 0


@pytest.mark.parametrize("name", ["a b", "a:b"])
def test_a_path_that_cannot_be_preloaded_is_refused(tmp_path: Path, name: str) -> None:
    built = Path(command()).resolve().parent
    library = built / "../runtime/libflexsc-runtime.so"
    if not library.is_file():
        pytest.skip("not the command of a build tree")
    copy = tmp_path / name
    (copy / "cmd").mkdir(parents=True)
    (copy / "runtime").mkdir()
    shutil.copy(command(), copy / "cmd/flexsc")
    shutil.copy(library, copy / "runtime")
    done = subprocess.run(
        [copy / "cmd/flexsc", "run", "true"],
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        env={**os.environ, "LD_LIBRARY_PATH": str(built / "../lib")},
    )
    refused(done, 1, "colon or a space")
