# SPDX-License-Identifier: MIT
"""flexbench's study: the parts of a request's processor time, and their tables."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

import pytest
from flexbench.machine import Cores
from flexbench.runner import Plan
from flexbench.samples import BenchError, Json, Measurement, Run, Settings
from flexstudy import webserver
from flexstudy.webserver import breakdown, stacks
from flexstudy.webserver.stacks import Subject

ROOT = Path(__file__).resolve().parents[2]

PID = 4711
OURS = f"web-events {PID}/{PID + 1}"
LIBC = "/usr/lib/x86_64-linux-gnu/libc.so.6"
WEB = "/build/examples/webserver/web-events"
RUNTIME = "/usr/lib/flexsc/libflexsc-runtime.so"
# The outermost frames of a system call, from the outermost one on.
TRAP = ["entry_SYSCALL_64_after_hwframe", "do_syscall_64"]
RING = [*TRAP, "__x64_sys_io_uring_enter", "io_submit_sqes", "io_issue_sqe"]
WORKER = ["ret_from_fork_asm", "ret_from_fork", "io_wq_worker", "io_wq_submit_work"]
IRQ = ["asm_sysvec_apic_timer_interrupt", "sysvec_apic_timer_interrupt"]
PACKETS = ["__dev_queue_xmit", "__local_bh_enable_ip", "do_softirq.part.0"]
PACKETS += ["handle_softirqs", "net_rx_action", "tcp_v4_rcv"]


def call(name: str, *inner: str) -> list[str]:
    return [*TRAP, f"__x64_sys_{name}", *inner]


def in_kernel(names: Iterable[str], head: str = OURS) -> str:
    """A sample in the kernel, as perf script prints it; names: the outermost first."""
    lines = [f"\tffffffff81000{n:03x} {name}" for n, name in enumerate(names)]
    user = f"\t    7f5a0012ab34 recv ({LIBC})"
    return "\n".join(
        [head, *(f"{line} ([kernel.kallsyms])" for line in lines[::-1]), user]
    )


def in_user(symbol: str, place: str, head: str = OURS) -> str:
    return f"{head}\n\t    55d0c0de1234 {symbol} ({place})\n\t  0 [unknown] ([unknown])"


KERNEL_SAMPLES = [
    ("receive", call("recvfrom", "__sys_recvfrom", "tcp_recvmsg")),
    ("receive", [*RING, "io_recv", "sock_recvmsg", "tcp_recvmsg"]),
    ("receive", [*RING[:3], "task_work_run", "tctx_task_work", "io_recv"]),
    ("send", call("sendto", "__sys_sendto", "tcp_sendmsg", "tcp_write_xmit")),
    ("send", call("sendfile64", "do_splice_direct", "filemap_splice_read")),
    ("send", call("writev", "sock_write_iter", "tcp_sendmsg")),
    ("send", [*RING, "io_send", "tcp_sendmsg"]),
    ("files", call("openat2", "do_filp_open", "link_path_walk")),
    ("files", call("statx", "vfs_statx")),
    ("files", call("pread64", "vfs_read", "filemap_read")),
    ("files", call("close", "fput_close_sync")),
    ("files", [*TRAP, "exit_to_user_mode_loop", "task_work_run", "____fput"]),
    ("files", [*RING, "io_statx", "do_statx"]),
    ("files", [*WORKER, "io_openat2", "do_filp_open"]),
    ("waiting", call("epoll_wait", "do_epoll_wait")),
    ("waiting", call("epoll_ctl", "do_epoll_ctl")),
    ("waiting", call("futex", "futex_wake", "try_to_wake_up")),
    ("waiting", call("recvfrom", "tcp_recvmsg", "schedule", "__schedule")),
    ("waiting", [*RING[:3], "io_cqring_wait", "schedule", "finish_task_switch.isra.0"]),
    ("waiting", [*TRAP, "exit_to_user_mode_loop", "schedule"]),
    ("uring", RING),
    ("uring", [*RING[:3], "io_cqring_wait"]),
    ("uring", [*WORKER, "io_free_req"]),
    ("softirq", call("sendto", "tcp_sendmsg", *PACKETS)),
    ("softirq", [*IRQ, "irq_exit_rcu", "handle_softirqs"]),
    ("entry", TRAP),
    ("entry", TRAP[:1]),
    ("entry", [*TRAP, "syscall_exit_to_user_mode"]),
    ("other", call("madvise", "do_madvise")),
    ("other", ["asm_exc_page_fault", "exc_page_fault", "handle_mm_fault"]),
    ("other", [*IRQ, "hrtimer_interrupt"]),
]


def part(text: str, program: str = "web-events") -> str:
    (sample,) = stacks.parse(text)
    return stacks.part_of(sample, Subject(PID, program))


@pytest.mark.parametrize(("expected", "names"), KERNEL_SAMPLES)
def test_the_kernel_s_functions_tell_the_part(expected: str, names: list[str]) -> None:
    assert part(in_kernel(names)) == expected


@pytest.mark.parametrize(
    ("expected", "symbol", "place"),
    [
        ("core", "web_done", WEB),
        ("core", "parse.part.0", WEB),
        ("core", "llhttp__internal__run", WEB),
        ("core", "response_file", WEB),
        ("driver", "drive", WEB),
        ("driver", "patience_end", WEB),
        ("library", "syscall", LIBC),
        ("library", "web_done", LIBC),
        ("library", "clock_gettime", "[vdso]"),
        ("library", "carrier_run", RUNTIME),
        ("library", "[unknown]", "[unknown]"),
    ],
)
def test_the_innermost_function_tells_the_part(
    expected: str, symbol: str, place: str
) -> None:
    assert part(in_user(symbol, place)) == expected


def test_what_web_loops_is_linked_with_is_no_driver() -> None:
    place = WEB.replace("events", "loops")
    for expected, symbol in [
        ("driver", "on_done"),
        ("library", "flexsc__post_entry"),
        ("library", "done_dispatch.cold"),
        ("core", "web_next"),
    ]:
        assert part(in_user(symbol, place), "web-loops") == expected


def test_the_process_tells_the_part() -> None:
    other, idle, send = "make 99/99", "swapper     0/0", call("sendto")
    assert part(in_kernel(send, other)) == "others"
    assert part(in_user("web_done", WEB, other)) == "others"
    assert part(in_kernel(["napi_threaded_poll"], "napi/v0-8193 88/88")) == "napi"
    assert part(in_kernel(["cpu_startup_entry", "default_idle"], idle)) == "idle"
    assert part(in_kernel(["do_idle", *PACKETS], idle)) == "softirq"
    assert part(in_kernel(["run_ksoftirqd", *PACKETS[3:]], "ksoftirqd/1 20/20")) == (
        "softirq"
    )
    assert part(in_kernel(PACKETS, other)) == "others"
    assert part(in_kernel(WORKER, f"iou-wrk-{PID} {PID}/{PID + 9}")) == "uring"
    # A thread that has ended since.
    assert part(in_kernel(send, ":-1     -1/-1")) == "others"


def test_the_parts_are_all_of_the_time() -> None:
    texts = [in_kernel(names) for _, names in KERNEL_SAMPLES]
    texts += [in_user("web_done", WEB), in_kernel(["do_idle"], "swapper 0/0")] * 4
    samples = list(stacks.parse("\n\n".join(texts) + "\n\n"))
    assert len(samples) == len(texts)
    shares = stacks.shares(samples, Subject(PID, "web-events"))
    assert list(shares) == list(stacks.PARTS)
    assert sum(shares.values()) == pytest.approx(100)
    assert shares["core"] == shares["idle"] == pytest.approx(400 / len(texts))
    for name in ("receive", "files", "waiting"):
        expected = sum(part == name for part, _ in KERNEL_SAMPLES)
        assert shares[name] == pytest.approx(100 * expected / len(texts))


def test_samples_without_names_tell_nothing() -> None:
    nameless = in_kernel(["[unknown]"] * 3)
    with pytest.raises(BenchError, match=r"no names of the kernel's functions.*root"):
        stacks.check(stacks.parse(nameless))
    stacks.check(stacks.parse(in_kernel(TRAP)))
    with pytest.raises(BenchError, match="no sample of the kernel"):
        stacks.check([])
    with pytest.raises(BenchError, match="no sample"):
        stacks.shares([], Subject(PID, "web-events"))
    with pytest.raises(BenchError, match="no process, but"):
        list(stacks.parse("WARNING: something else"))
    with pytest.raises(BenchError, match="no frame: strange"):
        list(stacks.parse(f"{OURS}\n\tstrange"))


# The table of names follows the sources.

DEFINED = re.compile(
    r"^(?!#|\s|typedef)(?:[\w*]+[ \t\n]+\**)*?(\w+)\([^;{}]*?\)\n\{", re.MULTILINE
)
EXAMPLES = ROOT / "study" / "servers" / "webserver"
CORE_FILES = [EXAMPLES / f"{name}.c" for name in ("web", "calls", "files")]
# Not linked into the servers: opening files without openat2(), and the clients' parser.
UNUSED = {ROOT / "http/beneath.c", ROOT / "http/reply.c"}
CORE_FILES += sorted(set((ROOT / "http").glob("*.c")) - UNUSED)


def functions(paths: Iterable[Path]) -> set[str]:
    found = {name for path in paths for name in DEFINED.findall(path.read_text())}
    assert len(found) > 10
    return found


def test_the_core_s_functions_are_known() -> None:
    core = functions(CORE_FILES)
    assert {name for name in core if not stacks.CORE.fullmatch(name)} == set()
    driver = functions(set(EXAMPLES.glob("*.c")) - set(CORE_FILES))
    assert {name for name in driver if stacks.CORE.fullmatch(name)} == set()


def test_the_functions_of_loops_are_known() -> None:
    common = ("command", "patience", "queue", "crew", "engine", "loops")
    loops = functions(EXAMPLES / f"{name}.c" for name in common)
    assert {n for n in loops if not stacks.LOOPS_DRIVER.fullmatch(n)} == set()
    library = functions((ROOT / "lib").rglob("*.c"))
    assert {n for n in library if stacks.CORE.fullmatch(n)} == set()


# Measuring without perf, and the tables.


def plan() -> Plan:
    return Plan("flexsc", Cores(1, 0, [0]), False, 3, 5, 1024, None)


def test_without_perf_one_sentence_says_so(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def refused(command: list[str]) -> str:
        raise BenchError("perf: Access to performance monitoring is limited.")

    (tmp_path / "root").mkdir()
    (tmp_path / "root" / "index.html").touch()
    monkeypatch.setattr(breakdown, "execute", refused)
    run = Run(machine={}, command=[])
    bench = breakdown.Bench(plan(), tmp_path)
    bench.look(run)
    assert not bench.samples
    assert not bench.counts
    assert len(run.notes) == 2
    assert "where time goes is left out: perf: Access to" in run.notes[0]


def add(run: Run, model: str, rates: list[float], sampled: bool = True) -> None:
    settings: Settings = {
        "model": model,
        "tuning": "",
        "connections": 128,
        "bytes": 1024,
        "seconds": 2,
        "network": "lo",
    }
    samples: Json = {"calls": [7.5], "switches": [0.001], "eagain": [0.0]}
    if sampled:
        shares = {part: 0.0 for part in stacks.PARTS}
        shares |= {"send": 40.0, "files": 20.0, "others": 30.0, "idle": 10.0}
        samples |= {f"share_{part}": [share] for part, share in shares.items()}
    rounds: list[Json] = [
        {"samples": {**samples, "requests_per_s": [rate]}, "counts": {}}
        for rate in rates
    ]
    run.measurements.append(Measurement("study-breakdown", settings, rounds))


def rows(text: str) -> dict[str, list[str]]:
    """The cells of each row, by the row's name."""
    lines = (re.split(r"  +", line) for line in text.splitlines()[1:])
    return {name: cells for name, *cells in lines}


def test_times_are_shares_of_the_core_s_time() -> None:
    run = Run(machine={}, command=[])
    add(run, "events", [40000.0, 50000.0, 100000.0])
    add(run, "loops", [100000.0])
    times, counts = webserver.show(run)
    found = rows(times)
    assert found["us a request"] == ["events", "loops"]
    assert found["sending"] == ["8.00", "4.00"]
    assert found["the server in all"] == ["12.0", "6.00"]
    assert found["other processes"] == ["6.00", "3.00"]
    assert "128 kept connections, a file of 1024 bytes; network lo" in times
    assert rows(counts)["a request's"] == ["calls", "EAGAIN", "switches"]
    assert rows(counts)["loops"] == ["7.50", "0.00", "0.0010"]


def test_counts_need_no_samples() -> None:
    run = Run(machine={}, command=[])
    add(run, "events", [40000.0], sampled=False)
    (counts,) = webserver.show(run)
    assert "calls and switches" in counts


def test_breakdown_is_a_part_that_is_asked_for() -> None:
    assert webserver.parse(["breakdown", "loops"]) == (
        ["breakdown"],
        ["loops", "events"],
    )
    assert "breakdown" not in webserver.parse([])[0]
