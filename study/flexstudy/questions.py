# SPDX-License-Identifier: MIT
"""Requests for programs with an event loop, in their protocols. The correct answer,
byte by byte, is determined once, by a request.
"""

from __future__ import annotations

import socket
import struct
from dataclasses import dataclass

from flexbench.samples import Settings

PATIENCE_S = 2
ANSWER_MAX = 65536

VALUE = bytes(ord("a") + i % 26 for i in range(64))
HOST, ADDRESS = "host.test", "10.1.2.3"


@dataclass(frozen=True)
class Question:
    """ends: the last bytes of the answer. first: a request that is made once before;
    its answer ends with first_ends.
    """

    request: bytes
    ends: bytes
    first: bytes = b""
    first_ends: bytes = b""
    udp: bool = False
    # The answers' heads contain the time, so only bodies are compared.
    http: bool = False


def exchange(to: socket.socket, request: bytes, ends: bytes) -> bytes:
    to.sendall(request)
    answer = b""
    while not answer.endswith(ends):
        more = to.recv(ANSWER_MAX)
        if not more:
            raise OSError("closed by the server")
        answer += more
    return answer


def learn(question: Question, address: str, port: int) -> Settings:
    """Make the request once; returns the settings of bench --raw rounds for it.
    OSError: no answer, or an unexpected one.
    """
    kind = socket.SOCK_DGRAM if question.udp else socket.SOCK_STREAM
    with socket.socket(socket.AF_INET, kind) as client:
        client.settimeout(PATIENCE_S)
        client.connect((address, port))
        if question.first:
            exchange(client, question.first, question.first_ends)
        answer = exchange(client, question.request, question.ends)
    if question.http:
        return {"mode": "http"}
    return {
        "mode": "exact",
        "request": question.request.hex(),
        "answer": answer.hex(),
        "udp": int(question.udp),
    }


def http(page: bytes, *, timed: bool) -> Question:
    request = b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"
    return Question(request, page, http=timed)


def dns(*, udp: bool) -> Question:
    labels = b"".join(bytes([len(x)]) + x.encode() for x in HOST.split("."))
    head = struct.pack(">HHHHHH", 1, 0, 1, 0, 0, 0)
    query = head + labels + struct.pack(">BHH", 0, 1, 1)
    before = b"" if udp else struct.pack(">H", len(query))
    return Question(before + query, b"\0\4" + socket.inet_aton(ADDRESS), udp=udp)


REDIS = Question(
    request=b"*2\r\n$3\r\nGET\r\n$3\r\nkey\r\n",
    ends=VALUE + b"\r\n",
    first=b"*3\r\n$3\r\nSET\r\n$3\r\nkey\r\n$%d\r\n%s\r\n" % (len(VALUE), VALUE),
    first_ends=b"+OK\r\n",
)
MEMCACHED = Question(
    request=b"get key\r\n",
    ends=b"END\r\n",
    first=b"set key 0 0 %d\r\n%s\r\n" % (len(VALUE), VALUE),
    first_ends=b"STORED\r\n",
)
