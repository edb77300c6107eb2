# SPDX-License-Identifier: MIT
"""Compressed files beside plain ones, and Cache-Control."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from filters import forbidden
from fixtures import Response, Server, Start, eventually, request

OPENAT2 = 437  # the same port everywhere
TEXT = "text/javascript", "application/javascript"


@pytest.fixture(scope="module")
def packed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The contents identify the file: no client here decompresses."""
    base = tmp_path_factory.mktemp("packed")
    (base / "secret").write_text("secret")
    root = base / "root"
    root.mkdir()
    for name in (
        "both.js",
        "both.js.br",
        "both.js.gz",
        "gz.js",
        "gz.js.gz",
        "plain.js",
        "folders.js",
        "closed.js",
        "linked.js",
        "only.js.gz",
    ):
        (root / name).write_text(name)
    for kind in ("br", "gz"):
        (root / f"folders.js.{kind}").mkdir()
        (root / f"linked.js.{kind}").symlink_to("../secret")
        (root / f"closed.js.{kind}").symlink_to(f"closed.js.{kind}")
    (root / "folder").mkdir()
    (root / "folder/index.html").write_text("index")
    (root / "folder/index.html.gz").write_text("packed index")
    (root / "bare").mkdir()
    (root / "bare/file").touch()
    long = "x" * 254
    (root / long).write_text("long")
    return root


OPTIONS = ("--precompressed", "--cache-control", "max-age=60, public")

# Values of Accept-Encoding, and the encoding that they select, of gzip and br.
ACCEPTED: list[tuple[list[str], str]] = [
    ([], ""),
    ([""], ""),
    (["identity"], ""),
    (["deflate, zstd"], ""),
    (["gzip"], "gz"),
    (["x-gzip"], "gz"),
    (["GZIP"], "gz"),
    (["br"], "br"),
    (["gzip, deflate, br, zstd"], "br"),
    (["gzip,br"], "br"),
    (["gzip", "br"], "br"),
    (["deflate", "gzip"], "gz"),
    (["*"], "br"),
    (["*;q=0"], ""),
    (["*;q=0, gzip"], "gz"),
    (["br;q=0, *"], "gz"),
    (["br;q=0, gzip;q=0, *"], ""),
    (["*, br;q=0"], "gz"),
    (["br;q=0"], ""),
    (["br;q=0.000"], ""),
    (["br;q=0.001"], "br"),
    (["br;q=1"], "br"),
    (["br;q=1.000"], "br"),
    (["br ; q=0.5"], "br"),
    (["br\t;\tq=0.5\t, gzip"], "br"),
    (["gzip;q=1, br;q=0.1"], "br"),
    (["br;Q=0"], ""),
    # Malformed weights.
    (["br;"], ""),
    (["br;q"], ""),
    (["br;q="], ""),
    (["br;q=x"], ""),
    (["br;q=-1"], ""),
    (["br;q=2"], ""),
    (["br;q=0.0001"], ""),
    (["br;q=1;q=1"], ""),
    (["br q=1"], ""),
    (["br;q=, gzip"], "gz"),
    # Names that only resemble encodings.
    (["brr, gzipp, b, g, xgzip"], ""),
    ([",,,"], ""),
    ([" , br , "], "br"),
    ([";q=1"], ""),
    (['"br"'], ""),
    (["br=1"], ""),
    (["," * 5000 + "gzip"], "gz"),
    (["x" * 9000], ""),
]


def ask(
    server: Server, target: str, values: list[str], method: str = "GET"
) -> Response:
    lines = [f"{method} {target} HTTP/1.1", "Host: x"]
    lines += [f"Accept-Encoding: {value}" for value in values]
    with server.client() as client:
        client.send(("\r\n".join(lines) + "\r\n\r\n").encode())
        return client.read(method)


@pytest.mark.parametrize("cache", ["0", "100"])
def test_the_client_chooses_the_encoding(
    start: Start, packed: Path, cache: str
) -> None:
    server = start(*OPTIONS, "--cache", cache, root=packed)
    got = []
    # The second request is answered from the cache.
    for values, _ in ACCEPTED * 2:
        answer = ask(server, "/both.js", values)
        assert answer.status == 200
        assert answer.headers["vary"] == "Accept-Encoding"
        assert answer.headers["cache-control"] == "max-age=60, public"
        assert answer.headers["content-type"].startswith(TEXT)
        encoding = answer.headers.get("content-encoding", "")
        suffix = {"": "", "gzip": "gz", "br": "br"}[encoding]
        assert answer.body.decode() == f"both.js.{suffix}".rstrip(".")
        got.append((values, suffix))
    assert got == ACCEPTED * 2


ALL = ["gzip, br"]

# The responses for a client that accepts both.
FOUND = [
    ("/both.js", 200, b"both.js.br", "br"),
    ("/gz.js", 200, b"gz.js.gz", "gzip"),
    ("/plain.js", 200, b"plain.js", ""),
    ("/folders.js", 200, b"folders.js", ""),
    ("/linked.js", 200, b"linked.js", ""),
    ("/closed.js", 200, b"closed.js", ""),
    ("/only.js", 200, b"only.js.gz", "gzip"),
    ("/folder/", 200, b"packed index", "gzip"),
    ("/both.js.br", 200, b"both.js.br", ""),
    ("/both.js.gz", 200, b"both.js.gz", ""),
    ("/" + "x" * 254, 200, b"long", ""),
    ("/folder", 301, None, ""),
    ("/bare/", 200, None, ""),
    ("/none.js", 404, None, ""),
    ("/both.js/", 404, None, ""),
    ("/" + "a/" * 2030, 404, None, ""),
    ("/" + "a/" * 2040, 414, None, ""),
]


@pytest.mark.parametrize("openat2", [True, False])
@pytest.mark.parametrize("cache", ["0", "100"])
def test_compressed_files_are_found(
    start: Start, packed: Path, cache: str, openat2: bool
) -> None:
    before = None if openat2 else forbidden(OPENAT2, errno.ENOSYS)
    server = start(*OPTIONS, "--cache", cache, root=packed, before=before)
    for target, status, body, encoding in FOUND * 2:
        answer = ask(server, target, ALL)
        assert (answer.status, target) == (status, target)
        if body is not None:
            assert answer.body == body
            assert answer.headers["vary"] == "Accept-Encoding"
        else:
            assert "cache-control" not in answer.headers
        assert answer.headers.get("content-encoding", "") == encoding
        assert b"secret" not in answer.body
        head = ask(server, target, ALL, "HEAD")
        assert {**head.headers, "date": ""} == {**answer.headers, "date": ""}
    # Clients that accept no encoding don't get the compressed file instead.
    assert ask(server, "/only.js", []).status == 404
    assert ask(server, "/folder/", []).body == b"index"
    assert server.stop() == 0


def test_a_pipe_beside_a_file_is_not_read(start: Start, tmp_path: Path) -> None:
    root = tmp_path / "root"
    root.mkdir()
    (root / "file").write_text("plain")
    os.mkfifo(root / "file.br")
    server = start("--precompressed", "--timeout", "1", root=root)
    with server.client() as client:
        assert client.ask("/file", Accept_Encoding="br").body == b"plain"


def test_parts_and_conditions_are_those_of_the_compressed_file(
    start: Start, packed: Path
) -> None:
    server = start(*OPTIONS, "--cache", "100", root=packed)
    with server.client() as client:
        tags = {}
        for accepted in ("br", "gzip", "identity"):
            answer = client.ask("/both.js", Accept_Encoding=accepted)
            tags[accepted] = answer.headers["etag"]
            part = client.ask("/both.js", Accept_Encoding=accepted, Range="bytes=-3")
            assert (part.status, part.body) == (206, answer.body[-3:])
            same = client.ask(
                "/both.js", Accept_Encoding=accepted, If_None_Match=tags[accepted]
            )
            assert same.status == 304
            assert same.headers["vary"] == "Accept-Encoding"
            assert same.headers["cache-control"] == "max-age=60, public"
        assert len(set(tags.values())) == 3
        other = client.ask("/both.js", Accept_Encoding="gzip", If_None_Match=tags["br"])
        assert other.status == 200


def test_the_cache_notices_new_and_lost_compressed_files(
    start: Start, tmp_path: Path
) -> None:
    root = tmp_path / "root"
    root.mkdir()
    (root / "file").write_text("plain")
    server = start("--precompressed", "--cache", "10", root=root)
    with server.client() as client:

        def body() -> bytes:
            return client.ask("/file", Accept_Encoding="gzip, br").body

        assert body() == b"plain"
        # The cache doesn't check a name again for some time, so each change takes as
        # long.
        for kind in ("gz", "br"):
            (root / f"file.{kind}").write_text(kind)
        assert eventually(lambda: body() == b"br")
        (root / "file.br").unlink()
        assert eventually(lambda: body() == b"gz")
        assert client.ask("/file").body == b"plain"


def test_without_the_options_nothing_is_negotiated(start: Start, packed: Path) -> None:
    server = start(root=packed)
    answer = ask(server, "/both.js", ALL)
    assert answer.body == b"both.js"
    assert not {"vary", "cache-control", "content-encoding"} & set(answer.headers)
    assert ask(server, "/only.js", ALL).status == 404


def test_cache_control_alone(start: Start) -> None:
    longest = "x" * 127
    server = start("--cache-control", longest)
    with server.client() as client:
        client.send(request("/hello.txt") + request("/none") + request("/list/"))
        headers = client.read().headers
        assert headers["cache-control"] == longest and "vary" not in headers
        assert "cache-control" not in client.read().headers
        assert "cache-control" not in client.read().headers


@pytest.mark.parametrize("value", ["", "a\r\nX: b", "a\n", "\x7f", "\xe9", "x" * 128])
def test_no_other_header_can_be_injected(start: Start, value: str) -> None:
    with pytest.raises(RuntimeError, match="printable ASCII"):
        start("--cache-control", value)
