# SPDX-License-Identifier: MIT
"""The system-call table, and the files that are generated from it.

The tests check three things. A malformed table is refused, with the line number. The
real table agrees with the kernel's headers and tracepoints. The generated C and the
manual page agree with the table. Checks that need something which the machine lacks
are skipped, with the reason.
"""

from __future__ import annotations

import importlib.util
import os
import platform
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
INTERNAL = (f"-I{ROOT}", f"-I{ROOT}/include/uapi")
TABLE = ROOT / "lib" / "calls" / "syscalls.tbl"
GENERATOR = ROOT / "lib" / "calls" / "gencalls.py"
TRACEPOINTS = Path("/sys/kernel/tracing/events/syscalls")
TIMEOUT = 120

MACHINE = "aarch64" if platform.machine() == "aarch64" else "x86-64"
WARNINGS = ["-Wall", "-Wextra", "-Wconversion", "-Wsign-conversion", "-Wshadow"]
WARNINGS += ["-Werror", "-pedantic"]


def load_generator() -> Any:
    spec = importlib.util.spec_from_file_location("gencalls", GENERATOR)
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    sys.path.insert(0, str(GENERATOR.parent))
    spec.loader.exec_module(module)
    return module


gen = load_generator()
CALLS = gen.parse_table(TABLE.read_text(encoding="utf-8"))
BY_NAME = {call.name: call for call in CALLS}
HERE = [call for call in CALLS if MACHINE in call.numbers]


def run(*command: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command, capture_output=True, text=True, timeout=TIMEOUT, check=False
    )


def run_ok(*command: str | Path) -> str:
    done = run(*command)
    assert done.returncode == 0, done.stderr
    return done.stdout


def need(tool: str) -> str:
    if not shutil.which(tool):
        pytest.skip(f"{tool} is not installed")
    return tool


def generate(what: str, output: Path) -> Path:
    output.parent.mkdir(parents=True, exist_ok=True)
    run_ok(sys.executable, GENERATOR, what, TABLE, output)
    return output


# Malformed tables.

GOOD = "read 0 63 wait:in READ rw fd fd, void *buf, size_t count"

MALFORMED = {
    "duplicate name": ("read 1 - fast - - void", "name read is already on line 2"),
    "duplicate x86-64 number": (
        "write 0 64 fast - - void",
        "x86-64 number 0 is already on line 2",
    ),
    "duplicate aarch64 number": (
        "write 1 63 fast - - void",
        "aarch64 number 63 is already on line 2",
    ),
    "bad name": ("Write 1 64 fast - - void", "'Write'"),
    "number that is none": ("write 0x1 64 fast - - void", "'0x1'"),
    "negative number": ("write 1 -64 fast - - void", "'-64'"),
    "huge number": ("write 65536 64 fast - - void", "65536"),
    "no number": ("write - - fast - - void", "no number"),
    "unknown class": ("write 1 64 slow - - void", "unknown class 'slow'"),
    "unknown operation": ("write 1 64 disk SCRIBBLE rw fd fd", "'SCRIBBLE'"),
    "operation of none": ("write 1 64 disk NOP rw fd fd", "'NOP'"),
    "operation without shape": ("write 1 64 disk WRITE - fd fd", "a shape"),
    "shape without operation": ("write 1 64 disk - rw fd fd", "a shape"),
    "shape that is none": ("write 1 64 disk WRITE r/w fd fd", "'r/w'"),
    "unknown type": ("write 1 64 disk - - word x", "unknown type 'word'"),
    "typedef of nothing": ("write 1 64 disk - - word *x", "unknown type 'word'"),
    "void by value": ("write 1 64 disk - - void x", "unknown type 'void'"),
    "structure by value": ("write 1 64 disk - - struct stat s", "by pointer"),
    "pointer to fd": ("write 1 64 disk - - fd *x", "'fd'"),
    "argument without name": ("write 1 64 disk - - int", "'int'"),
    "empty argument": ("write 1 64 disk - - int a,, int b", "''"),
    "C++ keyword": ("write 1 64 disk - - int new", "'new' is reserved"),
    "our own parameter": ("write 1 64 disk - - int cb", "'cb' is reserved"),
    "same argument twice": ("write 1 64 disk - - int a, int a", "'a'"),
    "seven arguments": (
        "write 1 64 disk - - int a, int b, int c, int d, int e, int f, int g",
        "7 arguments",
    ),
    "too few columns": ("write 1 64 disk - -", "6 columns"),
    "refused without reason": ("write 1 64 never - - void", "without a '# reason'"),
    "refused with operation": ("write 1 64 never WRITE rw fd fd # no", "refused"),
    "polled without descriptor": ("write 1 64 wait:out - - int fd", "wait:out"),
    "bar without attribute": ("write 1 64 disk - - fd fd |", "no attribute"),
    "unknown attribute": ("write 1 64 disk - - fd fd | slow", "'slow'"),
    "attribute twice": ("write 1 64 disk - - fd fd | same same", "given twice"),
    "argument that is none": ("write 1 64 disk - - fd fd | len=1", "'len=1'"),
    "length that is none": ("write 1 64 disk - - fd fd | len=vec:0", "iov:N"),
    "position that is none": ("write 1 64 disk - - fd fd | pos=end", "cur?N"),
    "limit that is none": ("write 1 64 disk - - fd fd | limit=0s", "Nms"),
    "flag that is none": (
        "write 1 64 disk - - fd fd, int f | flags=1 nowait=0x1",
        "isn't the name of a constant",
    ),
    "bits without flags": ("write 1 64 disk - - fd fd | nowait=RWF_NOWAIT", "'flags'"),
    "parts without length": ("write 1 64 disk - - fd fd | parts", "'len'"),
    "attempt without flags": ("write 1 64 disk - - fd fd | try", "'nowait'"),
    "two attempts": (
        "write 1 64 disk - - fd fd, int f | flags=1 nowait=A try=B",
        "contradicts",
    ),
    "result without attempt": ("write 1 64 disk - - fd fd | would=0", "'try'"),
    "result that is none": ("write 1 64 disk - - fd fd | try=A would=1", "'1'"),
    "trait with value": ("write 1 64 disk - - fd fd | sync=1", "takes no value"),
    "made thing that is none": ("write 1 64 disk - - fd fd | makes=pipes", "KIND"),
    "signal that is none": ("write 1 64 disk - - fd fd | raises=hup", "'hup'"),
    "handler that is none": ("write 1 64 disk - - fd fd | user=me", "'me'"),
    "two effects in one": (
        "write 1 64 disk - - fd fd | closes=0 shuts",
        "contradicts",
    ),
    "malformed variant": ("\tcount == 1 fast", "can't read the variant"),
    "variant by no argument": ("\tlength = A fast", "no argument 'length'"),
    "variant of no class": ("\tcount = A slow", "unknown class 'slow'"),
    "value twice": ("\tcount = A, A fast", "A is given twice"),
    "note that ends a comment": ("write 1 64 never - - void # no */", "comment"),
}


@pytest.mark.parametrize(("row", "words"), MALFORMED.values(), ids=MALFORMED)
def test_malformed_line_is_refused_by_number(
    tmp_path: Path, row: str, words: str
) -> None:
    table, output = tmp_path / "bad.tbl", tmp_path / "output"
    table.write_text(f"# a comment\n{GOOD}\n\n{row}\n", encoding="utf-8")
    for what in ("header", "table", "man"):
        done = run(sys.executable, GENERATOR, what, table, output)
        assert done.returncode == 1
        assert done.stderr.startswith(f"{table}:4: ")
        assert words in done.stderr
        assert done.stderr.count("\n") == 1
        assert not output.exists()


def test_a_variant_needs_a_call(tmp_path: Path) -> None:
    table = tmp_path / "bad.tbl"
    table.write_text("\telse fast\n", encoding="utf-8")
    done = run(sys.executable, GENERATOR, "table", table, tmp_path / "output")
    assert done.returncode == 1
    assert "needs a call above" in done.stderr


VARIANTS = {
    "value of an earlier line": ("\tcount = A fast\n\tcount = A disk", "line 2"),
    "variant behind else": ("\telse fast\n\tcount = A disk", "follow 'else'"),
}


@pytest.mark.parametrize(("lines", "words"), VARIANTS.values(), ids=VARIANTS)
def test_variants_exclude_each_other(tmp_path: Path, lines: str, words: str) -> None:
    table = tmp_path / "bad.tbl"
    table.write_text(f"{GOOD}\n{lines}\n", encoding="utf-8")
    done = run(sys.executable, GENERATOR, "table", table, tmp_path / "output")
    assert done.returncode == 1
    assert done.stderr.startswith(f"{table}:3: ")
    assert words in done.stderr


def test_only_calls_that_wait_have_variants_of_other_classes() -> None:
    with pytest.raises(gen.TableError, match="only a call of class wait"):
        gen.parse_table("getpid 39 172 fast - - int a\n\ta = A disk")


def test_an_attempt_adds_the_first_flag_with_which_a_call_does_not_wait() -> None:
    row = "f 1 1 wait - - fd fd, int flags | flags=1 nowait=A,B"
    (call,) = gen.parse_table(row)
    assert (call.fields["nowait"], call.fields["attempt"]) == ("A | B", "A")
    with pytest.raises(gen.TableError, match="has 'nowait'"):
        gen.parse_table(f"{row}\n\tfd = C  wait | try=D")


def test_a_variant_inherits_the_rows_attributes() -> None:
    call, *_ = gen.parse_table(
        "f 1 1 wait - - fd fd, int cmd, int flags | flags=2 nowait=A site\n"
        "\tcmd & MASK = GET, SET  fast | hangs changes=flags\n"
        "\telse  -\n"
    )
    first, last = call.variants
    assert (first.arg, first.mask, first.values) == (1, "MASK", ("GET", "SET"))
    assert (first.kind, last.kind) == ("fast", "wait")
    assert first.fields == {
        "flags_arg": "2",
        "nowait": "A",
        "attempt": "A",
        "traits": "CALL_SITE | CALL_HANGS",
        "changes": "CHANGES_FLAGS",
    }
    assert last.fields == call.fields
    assert "CALL_CHANGES" in gen.base_fields(call, 0)["traits"]


def test_empty_table_is_refused(tmp_path: Path) -> None:
    table = tmp_path / "empty.tbl"
    table.write_text("# nothing\n", encoding="utf-8")
    done = run(sys.executable, GENERATOR, "table", table, tmp_path / "output")
    assert done.returncode == 1
    assert "no system call" in done.stderr


def test_missing_table_is_reported_in_one_line(tmp_path: Path) -> None:
    missing = tmp_path / "missing.tbl"
    done = run(sys.executable, GENERATOR, "table", missing, tmp_path / "output")
    assert done.returncode == 1
    assert str(missing) in done.stderr
    assert done.stderr.count("\n") == 1


# The real table against the kernel.

HEADERS = {
    "x86-64": ("/usr/include/x86_64-linux-gnu", "/usr/x86_64-linux-gnu/include"),
    "aarch64": ("/usr/include/aarch64-linux-gnu", "/usr/aarch64-linux-gnu/include"),
}
MACROS = {
    "x86-64": ["-D__x86_64__", "-D__LP64__"],
    "aarch64": ["-U__x86_64__", "-D__aarch64__", "-D__LP64__"],
}
NOT_CALLS = {"syscalls", "arch_specific_syscall"}


def header_numbers(machine: str, include: Path) -> dict[str, int]:
    """Return the numbers that <asm/unistd.h> of this machine defines."""
    text = run_ok(
        *(need("gcc"), "-E", "-dM", "-nostdinc", "-U__ILP32__", *MACROS[machine]),
        *("-isystem", include, "-isystem", "/usr/include"),
        *("-include", "asm/unistd.h", "-x", "c", "/dev/null"),
    )
    defined = dict(re.findall(r"^#define (__NR\w+) (\w+)$", text, re.MULTILINE))
    numbers = {}
    for name, value in defined.items():
        if name.startswith("__NR_") and name[5:] not in NOT_CALLS:
            while value in defined:
                value = defined[value]
            numbers[name[5:]] = int(value)
    return numbers


@pytest.mark.parametrize("machine", HEADERS)
def test_every_call_in_the_headers_is_in_the_table(machine: str) -> None:
    includes = [Path(name) for name in HEADERS[machine]]
    found = [path for path in includes if (path / "asm/unistd.h").exists()]
    if not found:
        pytest.skip(f"the kernel headers of {machine} are not installed")
    expected = header_numbers(machine, found[0])
    assert len(expected) > 250
    ours = {c.name: c.numbers[machine] for c in CALLS if machine in c.numbers}
    newest = max(ours.values())
    known = {name: nr for name, nr in expected.items() if nr <= newest}
    assert {name: ours.get(name) for name in known} == known


def test_the_table_reaches_linux_6_18() -> None:
    assert BY_NAME["cachestat"].numbers == {"x86-64": 451, "aarch64": 451}
    assert BY_NAME["file_setattr"].numbers == {"x86-64": 469, "aarch64": 469}
    for machine in HEADERS:
        numbers = {c.numbers[machine] for c in CALLS if machine in c.numbers}
        assert set(range(424, 470)) <= numbers


def test_the_table_is_in_order() -> None:
    numbers = [call.numbers.get("x86-64", 0x10000) for call in CALLS]
    assert numbers == sorted(numbers)


def test_operations_have_the_kernels_numbers() -> None:
    header = Path("/usr/include/linux/io_uring.h")
    if not header.exists():
        pytest.skip("linux/io_uring.h is not installed")
    text = header.read_text(encoding="utf-8")
    body = text[text.index("\tIORING_OP_NOP,") : text.index("\tIORING_OP_LAST,")]
    names = re.findall(r"^\tIORING_OP_(\w+),", body, re.MULTILINE)
    assert len(names) > 40
    ours = {number: name for name, number in gen.OPS.items()}
    pairs = [(ours[n], name) for n, name in enumerate(names) if n in ours]
    assert len(pairs) > 40
    assert [a for a, _ in pairs] == [b for _, b in pairs]


# Tracepoints that have another name than the call.
TRACED_AS = {
    "stat": "newstat",
    "fstat": "newfstat",
    "lstat": "newlstat",
    "uname": "newuname",
    "sendfile": "sendfile64",
    "umount2": "umount",
}
TRACED_FDS = """
    fd dfd oldfd fildes epfd ufd fd_in fd_out fdin fdout in_fd out_fd pidfd
    olddfd newdfd from_dfd to_dfd mqdes ruleset_fd fs_fd mountdirfd group_fd
    fanotify_fd
"""
# A range of numbers, another process's descriptor, and types that hide a pointer.
NOT_OUR_FD = {"close_range", "pidfd_getfd"}
HIDDEN_POINTER = {"capget", "capset"}


def traced_args(name: str) -> list[str] | None:
    """Return the arguments of a system call as the running kernel traces them."""
    path = TRACEPOINTS / f"sys_enter_{TRACED_AS.get(name, name)}" / "format"
    if not path.exists():
        return None
    fields = re.findall(r"\tfield:(.*?);", path.read_text(encoding="utf-8"))
    return fields[fields.index("int __syscall_nr") + 1 :]


def check_traced(call: Any, traced: list[str]) -> None:
    names = [arg.name for arg in call.args]
    assert len(traced) == len(call.args), f"{call.name}: {traced} against {names}"
    for arg, field in zip(call.args, traced, strict=True):
        where = f"{call.name}: {field} against {arg.declaration}"
        if "*" in field:
            assert arg.pointer, where
        elif arg.owned:
            assert call.name in HIDDEN_POINTER, where
        elif field.split()[-1] in TRACED_FDS.split():
            assert arg.fd or call.name in NOT_OUR_FD, where


def test_arguments_agree_with_the_running_kernel() -> None:
    if not os.access(TRACEPOINTS, os.R_OK | os.X_OK):
        pytest.skip("the system-call tracepoints are not readable here")
    compared = 0
    for call in CALLS:
        traced = traced_args(call.name)
        if traced is not None:
            check_traced(call, traced)
            compared += 1
    assert compared > 200


# The generated header.

COMPILERS = {
    "gcc": ["-std=c11"],
    "gcc ": ["-std=gnu17", "-D_GNU_SOURCE"],
    "g++": ["-std=c++17"],
    "clang": ["-std=c11"],
    "clang++": ["-std=c++20"],
    "aarch64-linux-gnu-gcc": ["-std=c11"],
}

# Users' own includes, with whose macros and types the header has to compile.
OTHERS = """
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/sysinfo.h>
#include <sys/sysmacros.h>
#include <sys/time.h>
#include <sys/timex.h>
#include <sys/uio.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
"""
ORDERS = {"alone": ("", ""), "before": ("", OTHERS), "after": (OTHERS, "")}


def addresses() -> str:
    """Return C code that takes the address of every function."""
    lines = ["typedef void any(void);", "any *all[] = {"]
    for call in CALLS:
        names = [f"flexsc_{call.name}", f"flexsc_loop_{call.name}"]
        if call.kind != "never":
            names.append(f"flexsc_loop_{call.name}_after")
        text = "".join(f"(any *){name}, " for name in names)
        lines += [f"#ifdef FLEXSC_NR_{call.name}", text, "#endif"]
    return "\n".join([*lines, "};", ""])


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with all generated files."""
    path = tmp_path_factory.mktemp("generated")
    generate("header", path / "flexsc" / "syscalls.h")
    generate("default", path / "flexsc" / "default_syscalls.h")
    (path / "flexsc" / "version.h").touch()
    generate("table", path / "table.c")
    return path


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("compiler", COMPILERS)
def test_header_compiles_for_users(
    built: Path, tmp_path: Path, compiler: str, order: str
) -> None:
    tool = need(compiler.strip())
    before, after = ORDERS[order]
    source = tmp_path / ("all.cc" if "++" in tool else "all.c")
    source.write_text(
        f"{before}\n#include <flexsc/default.h>\n{after}\n{addresses()}",
        encoding="utf-8",
    )
    run_ok(
        *(tool, *COMPILERS[compiler], *WARNINGS, f"-I{built}"),
        *(f"-I{ROOT / 'include'}", "-c", source, "-o", tmp_path / "all.o"),
    )


def test_every_call_of_this_machine_has_its_functions(built: Path) -> None:
    for name, prefix in (("syscalls.h", "loop_"), ("default_syscalls.h", "")):
        text = (built / "flexsc" / name).read_text(encoding="utf-8")
        for call in CALLS:
            assert f"static inline int flexsc_{prefix}{call.name}(" in text
            guarded = f"#ifdef FLEXSC_NR_{call.name}\n" in text
            assert guarded == (len(call.numbers) == 1)


def test_header_names_exactly_the_lent_pointers(built: Path) -> None:
    text = (built / "flexsc" / "syscalls.h").read_text(encoding="utf-8")
    found = re.findall(
        r"/\*[\s*]*(\w+)\(2\)\.(.*?)\*/\n"
        r"static inline int flexsc_loop_(\w+)\((.*?)\)\n",
        text,
        re.DOTALL,
    )
    assert [name for name, *_ in found] == [call.name for call in CALLS]
    for name, words, function, parameters in found:
        assert name == function
        call = BY_NAME[name]
        said = " ".join(words.replace("*", " ").split())
        if call.kind == "never":
            assert said == f"Refused: {call.note}."
            continue
        addresses = {arg.name for arg in call.args if arg.base == "addr"}
        pointers = re.findall(r"\*(?:const \*)?(\w+)", parameters)[2:]
        lent = [pointer for pointer in pointers if pointer not in addresses]
        match = re.fullmatch(r"The library owns (.*) until the callback\.", said)
        owned = re.split(r", | and ", match[1]) if match else []
        assert owned == lent, name


POSTING = r"""
#include <flexsc/default.h>
#include <stdio.h>

struct flexsc_loop *flexsc_loop_default(void)
{
	return (struct flexsc_loop *)16;
}

int flexsc_loop_call(struct flexsc_loop *loop, struct flexsc_cb *cb,
		unsigned int nr, uint64_t a0, uint64_t a1, uint64_t a2,
		uint64_t a3, uint64_t a4, uint64_t a5)
{
	printf("%ld %ld %u %ld %ld %ld %ld %ld %ld\n", (long)loop, (long)cb, nr,
	(long)a0, (long)a1, (long)a2, (long)a3, (long)a4, (long)a5);
	return -95;
}

int flexsc__call3(struct flexsc_loop *loop, struct flexsc_cb *cb,
		unsigned int nr, uint64_t a0, uint64_t a1, uint64_t a2)
{
	printf("three: ");
	return flexsc_loop_call(loop, cb, nr, a0, a1, a2, 0, 0, 0);
}

int flexsc_loop_call_after(struct flexsc_loop *loop, struct flexsc_cb *cb,
		struct flexsc_cb *before, unsigned int chain, unsigned int nr,
		const uint64_t a[6])
{
	printf("after %ld, %u: ", (long)before, chain);
	return flexsc_loop_call(loop, cb, nr, a[0], a[1], a[2], a[3], a[4], a[5]);
}

int main(void)
{
	struct flexsc_cb *cb = (struct flexsc_cb *)32;
	struct flexsc_cb *before = (struct flexsc_cb *)96;
	struct flexsc_loop *loop = (struct flexsc_loop *)64;
	int bad = 0;

	bad |= flexsc_getpid(cb) != -95;
	bad |= flexsc_loop_pread64(loop, cb, -1, (void *)8, 7, -5) != -95;
	bad |= flexsc_renameat2(0, -100, (char *)1, 2, (char *)3, 4U) != -95;
	bad |= flexsc_futex((void *)0, (void *)1, 2, 3, (void *)4, (void *)5,
			0xffffffffU) != -95;
	bad |= flexsc_loop_getpid_after(loop, cb, before, 16) != -95;
	bad |= flexsc_loop_read_after(loop, cb, before, 1, -1, (void *)8, 7) != -95;
	return bad;
}
"""


def test_functions_post_their_arguments_in_place(built: Path, tmp_path: Path) -> None:
    source, program = tmp_path / "posting.c", tmp_path / "posting"
    source.write_text(POSTING, encoding="utf-8")
    includes = [f"-I{built}", f"-I{ROOT / 'include'}"]
    run_ok(need("gcc"), *includes, source, "-o", program)

    def number(name: str) -> int:
        return int(BY_NAME[name].numbers[MACHINE])

    assert run_ok(program).splitlines() == [
        f"three: 16 32 {number('getpid')} 0 0 0 0 0 0",
        f"64 32 {number('pread64')} -1 8 7 -5 0 0",
        f"16 0 {number('renameat2')} -100 1 2 3 4 0",
        f"16 0 {number('futex')} 1 2 3 4 5 4294967295",
        f"after 96, 16: 64 32 {number('getpid')} 0 0 0 0 0 0",
        f"after 96, 1: 64 32 {number('read')} -1 8 7 0 0 0",
    ]


LOOKING = r"""
#include "lib/calls/call_info.h"
#include <stdio.h>

int main(void)
{
	for (unsigned int nr = 0; nr < flexsc__call_count + 8; nr++) {
		const struct call_info *row = flexsc__call_info(nr);

		if (row->class != CLASS_NONE)
			printf("%u %s %d %d %d %d %d %d\n", nr, row->name,
			row->nargs, row->class, call_poll(row), row->fds,
			row->op, row->shape);
	}
	return flexsc__call_info(~0U)->class != CLASS_NONE;
}
"""
KINDS = {
    "fast": (1, 0),
    "disk": (2, 0),
    "wait": (3, 0),
    "wait:in": (3, 1),
    "wait:out": (3, 2),
    "self": (4, 0),
    "admin": (5, 0),
    "never": (6, 0),
}


def shape_numbers() -> dict[str, int]:
    """Return the numbers of the shapes in call_info.h; "" is no shape."""
    text = (ROOT / "lib" / "calls" / "call_info.h").read_text(encoding="utf-8")
    names = re.findall(r"\bSHAPE_(\w+)", text)
    numbers = {name.lower(): number for number, name in enumerate(names)}
    return {"": 0} | numbers


# Shapes of entries that aren't system calls.
OTHER_SHAPES = {"await", "multishot_accept", "multishot_recv"}


def test_every_shape_is_some_calls() -> None:
    used = {call.shape for call in CALLS}
    assert used | OTHER_SHAPES == set(shape_numbers()) - {"none"}


@pytest.mark.parametrize("compiler", ["gcc", "clang"])
def test_compiled_table_agrees_with_the_table(
    built: Path, tmp_path: Path, compiler: str
) -> None:
    source, program = tmp_path / "looking.c", tmp_path / "looking"
    source.write_text(LOOKING, encoding="utf-8")
    run_ok(
        *(need(compiler), "-std=gnu11", "-Wall", "-Wextra", "-Werror"),
        *(*INTERNAL, source, built / "table.c", "-o", program),
    )
    shapes = shape_numbers()
    expected = []
    for call in sorted(HERE, key=lambda call: int(call.numbers[MACHINE])):
        kind, poll = KINDS[call.kind]
        fds = sum(1 << n for n, arg in enumerate(call.args) if arg.fd)
        op = gen.OPS[call.op] if call.op else 0
        expected.append(
            f"{call.numbers[MACHINE]} {call.name} {len(call.args)} "
            f"{kind} {poll} {fds} {op} {shapes[call.shape]}"
        )
    work = 1 + max(int(call.numbers[MACHINE]) for call in HERE)
    accept, recv, poll_add = (gen.OPS[op] for op in ("ACCEPT", "RECV", "POLL_ADD"))
    expected += [
        f"{work} work 2 7 0 0 0 0",
        f"{work + 1} await 2 7 0 1 {poll_add} {shapes['await']}",
        f"{work + 2} accept (multishot) 4 8 0 1 {accept} {shapes['multishot_accept']}",
        f"{work + 3} recv (multishot) 4 8 0 1 {recv} {shapes['multishot_recv']}",
    ]
    assert run_ok(program).splitlines() == expected


# The manual page.


def test_manual_lists_every_call() -> None:
    listed, refused = gen.emit_man(CALLS).split("## REFUSED CALLS")
    rows = dict(re.findall(r"^\| (\w+) \| (.*) \| [^|]* \|$", listed, re.MULTILINE))
    rows.pop("Name")
    assert set(rows) == set(BY_NAME)
    for call in CALLS:
        words = gen.CLASSES[call.kind].words
        by = gen.executed_by(call)
        assert rows[call.name] == f"{words} | {call.op or '-'} | {by}"
    assert rows["statx"].endswith("worker")
    assert rows["recvfrom"].endswith("kernel")
    assert rows["getdents64"].endswith("thread")
    assert rows["getppid"].endswith("owner")
    assert {call.op for call in CALLS} > gen.WORKERS
    terms = re.findall(r"^- (.*?): ", refused.split("## ")[0], re.MULTILINE)
    named = [name for term in terms for name in re.findall(r"\w+", term)]
    assert sorted(named) == sorted(c.name for c in CALLS if c.kind == "never")


def test_the_module_executes_only_calls_that_may_run_on_any_thread() -> None:
    said = re.findall(r"^(ALLOWED|REFUSED)\((\w+)\)$", gen.emit_kernel(CALLS), re.M)
    allowed = {name for word, name in said if word == "ALLOWED"}
    refused = {name for word, name in said if word == "REFUSED"}
    assert len(said) == len(CALLS)
    assert allowed | refused == set(BY_NAME)
    for call in CALLS:
        anywhere = call.kind in ("fast", "disk", "wait", "wait:in", "wait:out")
        assert (call.name in allowed) == anywhere
    # Calls that end a thread, change its permissions, or replace the machine's kernel.
    assert refused >= {"exit", "execve", "setuid", "unshare", "seccomp", "reboot"}
    assert refused >= {"kexec_load", "finit_module", "delete_module", "swapoff"}
    # Calls that administer the machine.
    assert refused >= {"mount", "umount2", "acct", "bpf", "quotactl", "sethostname"}
    assert refused >= {"syslog", "chroot", "modify_ldt", "clock_settime"}
