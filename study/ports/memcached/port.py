#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Port memcached 1.6.18 to libflexsc, in an unpacked source: port.py SOURCE.

Each edit finds its place by a short expression, which must occur exactly once in its
function or file. So another version fails with the name of the missing place.
"""

from __future__ import annotations

import re
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent

# In memcached.c, where the responses and the state machine are.
SENT = """
void port_sent(conn *c, ssize_t res) {
    if (res < 0) {
        conn_set_state(c, conn_closing);
        return;
    }
    THR_STATS_LOCK(c);
    c->thread->stats.bytes_written += res;
    THR_STATS_UNLOCK(c);
    _transmit_post(c, res);
    if (c->resp_head)
        return;
    conn_release_items(c);
    conn_set_state(c, c->close_after_write ? conn_closing : conn_new_cmd);
}

void port_turn(conn *c) {
    drive_machine(c);
}
"""


class PortError(Exception):
    pass


@dataclass(frozen=True)
class Edit:
    """In the function (or, without one, the file): replace what the expression matches.
    \\g<0> in "text" keeps it.
    """

    file: str
    function: str
    expression: str
    text: str


EDITS = [
    # A worker's loop, and a connection's calls.
    Edit(
        "memcached.h", "", r"\} LIBEVENT_THREAD;", r"struct port_worker *port;\n\g<0>"
    ),
    Edit("memcached.h", "struct conn", r"\Z", r"struct port_io *io;\n"),
    Edit("memcached.h", "", r"\Z", '#include "flexsc.h"\n'),
    Edit("thread.c", "", r"\Z", '#include "flexsc.c"\n'),
    # Connections block, so that their calls can wait in the kernel.
    Edit("memcached.c", "drive_machine", r"SOCK_NONBLOCK\)", "0)"),
    Edit("memcached.c", "tcp_read", r"\bread\(c->sfd,", "port_read(c,"),
    Edit("memcached.c", "tcp_sendmsg", r"\bsendmsg\(c->sfd,", "port_sendmsg(c,"),
    Edit("memcached.c", "tcp_write", r"\bwrite\(c->sfd,", "port_write(c,"),
    Edit("memcached.c", "conn_close", r"\bclose\(c->sfd\);", "port_close(c);"),
    # A posted send ends the turn; its result continues it.
    Edit(
        "memcached.c",
        "transmit",
        r"c->sendmsg\(.*;",
        r"\g<0>\n    if (res == -1 && errno == EINPROGRESS)\n"
        r"        return TRANSMIT_SOFT_ERROR;",
    ),
    Edit("memcached.c", "", r"(?=^void event_handler\()", SENT.lstrip()),
    # Workers run loops, which other threads wake.
    Edit(
        "thread.c",
        "notify_worker",
        r"#ifdef HAVE_EVENTFD\n(.*\n)*#endif\n",
        "    port_worker_wake(t);\n",
    ),
    Edit(
        "thread.c",
        "thread_libevent_process",
        r"#ifdef HAVE_EVENTFD\n(.*\n)*?#endif\n",
        "    ev_count = INT_MAX; // one wake-up may stand for several\n",
    ),
    Edit(
        "thread.c",
        "thread_libevent_process",
        r"event_base_loopexit\(.*;",
        "port_worker_stop(me);",
    ),
    Edit(
        "thread.c",
        "worker_libevent",
        r"me->l = logger",
        r"port_worker_create(me);\n    \g<0>",
    ),
    Edit(
        "thread.c", "worker_libevent", r"event_base_loop\(.*;", "port_worker_run(me);"
    ),
    Edit(
        "thread.c",
        "worker_libevent",
        r"event_base_free",
        r"port_worker_destroy(me);\n    \g<0>",
    ),
]


def span(text: str, function: str) -> tuple[int, int]:
    """Where the body of a function or struct is. In memcached, it ends at the first
    line with a brace in its first column."""
    if not function:
        return 0, len(text)
    found = re.search(rf"^\w.*\b{function}( ?\(.*\)| ) ?{{\n", text, re.MULTILINE)
    if not found:
        found = re.search(rf"^{function} {{\n", text, re.MULTILINE)
    if not found:
        raise PortError(f"there is no {function}")
    return found.end(), text.index("\n}", found.end()) + 1


def edited(text: str, edit: Edit) -> str:
    begin, end = span(text, edit.function)
    body, count = re.subn(
        edit.expression, edit.text, text[begin:end], flags=re.MULTILINE
    )
    if count != 1:
        raise PortError(f"{edit.expression} occurs {count} times")
    return text[:begin] + body + text[end:]


def port(source: Path) -> None:
    for edit in EDITS:
        path = source / edit.file
        try:
            path.write_text(edited(path.read_text(), edit))
        except PortError as error:
            where = f"{edit.file}: {edit.function}".rstrip(": ")
            raise PortError(f"{where}: {error}: not memcached 1.6.18?") from None
    for name in ("flexsc.c", "flexsc.h"):
        shutil.copy(HERE / name, source)


def main(words: list[str]) -> int:
    if len(words) != 1:
        print("usage: port.py SOURCE", file=sys.stderr)
        return 2
    try:
        port(Path(words[0]))
    except (OSError, PortError) as error:
        print(f"port.py: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
