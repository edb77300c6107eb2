# SPDX-License-Identifier: MIT
"""The responses of flexsc serve: files, ranges, folders, and errors."""

from __future__ import annotations

import email.utils
import hashlib
import http.client
import os
import re
import socket
import time
from pathlib import Path

import pytest

from fixtures import BIG, PATIENCE, Client, Server, Start, request
from programs import Program, free_port, installed, started

HELLO = bytes(range(256)) * 4


# Files


def test_a_file_comes_with_its_headers(server: Server, tree: Path) -> None:
    before = time.time()
    answer = server.get("/hello.txt")
    after = time.time()
    assert (answer.status, answer.body) == (200, HELLO)
    assert answer.headers["content-length"] == "1024"
    assert answer.headers["content-type"] == "text/plain; charset=utf-8"
    assert answer.headers["accept-ranges"] == "bytes"
    modified = int((tree / "hello.txt").stat().st_mtime)
    date = email.utils.formatdate(modified, usegmt=True)
    assert answer.headers["last-modified"] == date
    now = email.utils.parsedate_to_datetime(answer.headers["date"])
    assert before - 5 < now.timestamp() < after + 5
    assert re.fullmatch(r'"[0-9a-f-]+"', answer.headers["etag"])


def test_python_s_own_client_is_served(server: Server) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=PATIENCE)
    for _ in range(3):
        connection.request("GET", "/hello.txt")
        answer = connection.getresponse()
        assert (answer.status, answer.read()) == (200, HELLO)
    connection.close()


def test_head_has_headers_and_no_body(server: Server) -> None:
    with server.client() as client:
        full = client.ask("/hello.txt")
        head = client.ask("/hello.txt", "HEAD")
        assert head.status == 200
        assert {**head.headers, "date": ""} == {**full.headers, "date": ""}
        assert client.ask("/none", "HEAD").status == 404
        assert client.ask("/hello.txt").body == HELLO


def test_an_empty_file_is_empty(server: Server) -> None:
    with server.client() as client:
        answer = client.ask("/empty")
        assert (answer.status, answer.body) == (200, b"")
        assert answer.headers["content-length"] == "0"
        assert client.ask("/empty").status == 200


@pytest.mark.parametrize(
    ("target", "kind"),
    [
        ("/page.html", "text/html; charset=utf-8"),
        ("/no-type", "application/octet-stream"),
        ("/folder/", "text/html; charset=utf-8"),
    ],
)
def test_types_follow_from_names(server: Server, target: str, kind: str) -> None:
    assert server.get(target).headers["content-type"] == kind


def test_big_file_arrives_whole(server: Server, tree: Path) -> None:
    expected = hashlib.sha256((tree / "big").read_bytes()).digest()
    with server.client() as client:
        for _ in range(2):
            body = client.ask("/big").body
            assert len(body) == BIG
            assert hashlib.sha256(body).digest() == expected


@pytest.mark.parametrize(
    "target",
    [
        "/a%20b%25%3F%23+%c3%A9.txt",
        "/./a%20b%25%3f%23%2b%C3%A9.txt?query",
        "http://elsewhere/folder//..//a%20b%25%3f%23%2b%C3%A9.txt#x",
    ],
)
def test_percent_signs_are_decoded(server: Server, target: str) -> None:
    assert server.get(target).body == b"strange"


# Connections


def test_http_1_0_closes_unless_asked(server: Server) -> None:
    with server.client() as client:
        client.send(b"GET /empty HTTP/1.0\r\nConnection: keep-alive\r\n\r\n")
        assert client.read().headers["connection"] == "keep-alive"
        client.send(b"GET /hello.txt HTTP/1.0\r\n\r\n")
        answer = client.read()
        assert answer.body == HELLO
        assert answer.headers["connection"] == "close"
        assert client.closed()


def test_connection_close_is_obeyed(server: Server) -> None:
    with server.client() as client:
        answer = client.ask("/hello.txt", Connection="close")
        assert answer.headers["connection"] == "close"
        assert client.closed()


def test_pipelined_requests_are_answered_in_order(server: Server) -> None:
    targets = ["/hello.txt", "/none", "/folder/", "/empty", "/list/"] * 100
    wanted = [200, 404, 200, 200, 200] * 100
    with server.client() as client:
        client.send(b"".join(request(target) for target in targets))
        assert [client.read().status for _ in targets] == wanted


def test_a_request_may_come_byte_by_byte(server: Server) -> None:
    data = request("/hello.txt", Range="bytes=1-3")
    with server.client() as client:
        for i in range(len(data)):
            client.send(data[i : i + 1])
            time.sleep(0.0005)
        assert client.read().body == HELLO[1:4]
        assert client.ask("/hello.txt").body == HELLO


def test_half_closed_client_gets_its_answer(server: Server) -> None:
    with server.client() as client:
        client.send(request("/hello.txt"))
        client.socket.shutdown(socket.SHUT_WR)
        assert client.read().body == HELLO
        assert client.closed()


@pytest.mark.parametrize(
    "body",
    [
        b"Content-Length: 5\r\n\r\nhello",
        b"Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\nX: y\r\n\r\n",
    ],
)
def test_bodies_are_skipped(server: Server, body: bytes) -> None:
    with server.client() as client:
        client.send(b"GET /hello.txt HTTP/1.1\r\nHost: test\r\n" + body)
        assert client.read().body == HELLO
        assert client.ask("/folder/").body == b"index"


# Ranges and conditions


@pytest.mark.parametrize(
    ("value", "status", "first", "last"),
    [
        ("bytes=0-0", 206, 0, 0),
        ("bytes=10-19", 206, 10, 19),
        ("bytes=1000-", 206, 1000, 1023),
        ("bytes=1000-99999999999999999999999", 206, 1000, 1023),
        ("bytes=-24", 206, 1000, 1023),
        ("bytes=-5000", 206, 0, 1023),
        ("bytes=0-1,5-6", 200, 0, 1023),
        ("bytes=5-4", 200, 0, 1023),
        ("bytes=", 200, 0, 1023),
        ("lines=1-2", 200, 0, 1023),
    ],
)
def test_ranges(server: Server, value: str, status: int, first: int, last: int) -> None:
    answer = server.get("/hello.txt", Range=value)
    assert answer.status == status
    assert answer.body == HELLO[first : last + 1]
    if status == 206:
        expected = f"bytes {first}-{last}/1024"
        assert answer.headers["content-range"] == expected


@pytest.mark.parametrize("value", ["bytes=1024-", "bytes=5000-6000", "bytes=-0"])
def test_a_range_outside_is_refused(server: Server, value: str) -> None:
    answer = server.get("/hello.txt", Range=value)
    assert answer.status == 416
    assert answer.headers["content-range"] == "bytes */1024"


def test_a_range_of_a_big_file(server: Server, tree: Path) -> None:
    first, last = 70_001, 30_000_002
    answer = server.get("/big", Range=f"bytes={first}-{last}")
    assert answer.body == (tree / "big").read_bytes()[first : last + 1]


def test_conditions(server: Server) -> None:
    with server.client() as client:
        headers = client.ask("/hello.txt").headers
        etag, date = headers["etag"], headers["last-modified"]
        past = "Sun, 06 Nov 1994 08:49:37 GMT"

        def status(**conditions: str) -> int:
            return client.ask("/hello.txt", **conditions).status

        assert status(If_None_Match=etag) == 304
        assert status(If_None_Match=f'"x", W/{etag}') == 304
        assert status(If_None_Match="*") == 304
        assert status(If_None_Match='"x"') == 200
        assert status(If_None_Match='"x"', If_Modified_Since=date) == 200
        assert status(If_Modified_Since=date) == 304
        assert status(If_Modified_Since=past) == 200
        assert status(If_Modified_Since="yesterday") == 200
        assert status(If_Modified_Since="Sunday, 06-Nov-94 08:49:37 GMT") == 200
        assert status(If_Range=etag, Range="bytes=0-1") == 206
        assert status(If_Range=date, Range="bytes=0-1") == 206
        assert status(If_Range='"x"', Range="bytes=0-1") == 200
        assert status(If_Range=past, Range="bytes=0-1") == 200


def test_the_date_of_this_second_is_no_strong_validator(
    start: Start, tmp_path: Path
) -> None:
    """The file may change once more with the same date (RFC 9110, 8.8.2.2)."""
    file = tmp_path / "file"
    file.write_text("hello")
    part = {"Range": "bytes=0-1"}
    with start(root=tmp_path).client() as client:
        # The clock may tick between two requests, and a file of tomorrow is safe.
        for seconds, status in ((86400, 200), (-2, 206)):
            when = int(time.time()) + seconds
            os.utime(file, (when, when))
            fresh = client.ask("/file").headers
            assert client.ask("/file", If_Range=fresh["etag"], **part).status == 206
            date = fresh["last-modified"]
            assert client.ask("/file", If_Range=date, **part).status == status


EMPTY = {"bytes=-5": 200, "bytes=0-": 200, "bytes=0-9": 200, "bytes=3-": 416}


def test_a_range_of_an_empty_file_is_the_whole_file(
    start: Start, tree: Path, tmp_path: Path
) -> None:
    """nginx answers so, too: Content-Range can't describe an empty range."""
    with started(NginxFiles(tree, tmp_path)) as nginx:
        for port in (start().port, nginx.port):
            with Client(port) as client:
                for value, status in EMPTY.items():
                    answer = client.ask("/empty", Range=value)
                    assert answer.status == status
                    ranges = "bytes */0" if status == 416 else None
                    assert answer.headers.get("content-range") == ranges


class NginxFiles(Program):
    """An nginx that serves the same files."""

    def __init__(self, tree: Path, folder: Path) -> None:
        self.port = free_port()
        (folder / "nginx.conf").write_text(f"""
            daemon off; master_process off; error_log {folder}/errors;
            pid {folder}/pid; events {{}} {"user root;" * (os.geteuid() == 0)}
            http {{
                access_log off; client_body_temp_path {folder}/1;
                proxy_temp_path {folder}/2; fastcgi_temp_path {folder}/3;
                uwsgi_temp_path {folder}/4; scgi_temp_path {folder}/5;
                server {{
                    listen 127.0.0.1:{self.port}; root {tree};
                    if_modified_since before;
                }}
            }}
        """)
        program = installed("nginx", "nginx-light")
        argv = [program, "-c", f"{folder}/nginx.conf", "-e", f"{folder}/errors"]
        super().__init__("native", argv, folder / "out")
        self.listen(self.port)


# RFC 9110, section 13.2.2: the headers of a request, and its status. TAG and DATE are
# those of the file. The last word of a row marks rows in which nginx differs.
PART = "Range: bytes=0-1"
PAST = "Sun, 06 Nov 1994 08:49:37 GMT"
FUTURE = "Fri, 01 Jan 2100 00:00:00 GMT"
CONDITIONS: list[tuple[int, list[str], str]] = [
    (200, ["If-Match: TAG"], ""),
    (200, ["If-Match: *"], ""),
    (200, ['If-Match: "x", TAG'], ""),
    (200, ['If-Match:  "x,y"  ,\t, TAG  '], ""),
    (200, ['If-Match: "x"', "If-Match: TAG"], "refuses it"),
    (200, ["if-match: TAG", "iF-MATCH: W/TAG"], "refuses it"),
    (412, ['If-Match: "x"'], ""),
    (412, ['If-Match: "x"', 'If-Match: "y"'], "refuses it"),
    (412, ["If-Match: W/TAG"], ""),
    (412, ['If-Match: "x", W/TAG'], ""),
    (412, ['If-Match: "*"'], ""),
    (412, ["If-Match: "], ""),
    (412, ["If-Match: nothing"], ""),
    (412, ['If-Match: "unended'], ""),
    (412, ['If-Match: "x"', PART], ""),
    (206, ["If-Match: TAG", PART], ""),
    (412, ['If-Match: "x"', "If-None-Match: TAG"], ""),
    (304, ["If-Match: TAG", "If-None-Match: TAG"], ""),
    (412, ['If-Match: "x"', f"If-Unmodified-Since: {FUTURE}"], ""),
    (200, ["If-Match: TAG", f"If-Unmodified-Since: {PAST}"], "looks at both"),
    (200, ["If-Unmodified-Since: DATE"], ""),
    (200, [f"If-Unmodified-Since: {FUTURE}"], ""),
    (412, [f"If-Unmodified-Since: {PAST}"], ""),
    (412, ["If-Unmodified-Since: Sunday, 06-Nov-94 08:49:37 GMT"], ""),
    (412, ["If-Unmodified-Since: Sun Nov  6 08:49:37 1994"], ""),
    (412, [f"If-Unmodified-Since: {PAST}", PART], ""),
    (206, [f"If-Unmodified-Since: {FUTURE}", PART], ""),
    (200, ["If-Unmodified-Since: yesterday"], "takes it for a date"),
    (200, [f"If-Unmodified-Since: {PAST}, {PAST}"], "takes the first date"),
    (200, [f"If-Unmodified-Since: {PAST}"] * 2, "refuses it"),
    (304, ["If-Unmodified-Since: DATE", "If-Modified-Since: DATE"], ""),
    (412, [f"If-Unmodified-Since: {PAST}", "If-None-Match: TAG"], ""),
    (304, ["If-None-Match: TAG"], ""),
    (304, ["If-None-Match: W/TAG"], ""),
    (304, ["If-None-Match: *"], ""),
    (304, ['If-None-Match: "x", W/TAG, "y"'], ""),
    (304, ['If-None-Match: "x"', "If-None-Match: TAG"], "refuses it"),
    (200, ['If-None-Match: "x"'], ""),
    (200, ['If-None-Match: "*"'], ""),
    (200, ["If-None-Match: nothing"], ""),
    (200, ['If-None-Match: "x"', "If-Modified-Since: DATE"], ""),
    (304, ["If-None-Match: TAG", f"If-Modified-Since: {PAST}"], "looks at both"),
    (304, ["If-None-Match: TAG", PART], ""),
    (206, ['If-None-Match: "x"', PART], ""),
    (304, ["If-Modified-Since: DATE"], ""),
    (304, [f"If-Modified-Since: {FUTURE}"], ""),
    (304, ["If-Modified-Since: DATE", PART], ""),
    (200, [f"If-Modified-Since: {PAST}"], ""),
    (200, ["If-Modified-Since: yesterday"], ""),
    (200, ["If-Modified-Since: DATE"] * 2, "refuses it"),
    (206, ["If-Range: TAG", PART], ""),
    (206, ["If-Range: DATE", PART], ""),
    (200, ["If-Range: W/TAG", PART], ""),
    (200, ['If-Range: "x"', PART], ""),
    (200, ['If-Range: TAG, "x"', PART], ""),
    (200, [f"If-Range: {PAST}", PART], ""),
    (200, [f"If-Range: {FUTURE}", PART], ""),
    (200, ["If-Range: yesterday", PART], ""),
    (200, ["If-Range: *", PART], ""),
    (200, ["If-Range: TAG"] * 2 + [PART], "refuses it"),
    (200, ['If-Range: "x"'], ""),
    (200, ['If-Range: "x"', "Range: bytes=9999-"], ""),
    (416, ["If-Range: TAG", "Range: bytes=9999-"], ""),
    (412, ['If-Match: "x"', "If-Range: TAG", PART], ""),
    (304, ["If-None-Match: TAG", 'If-Range: "x"', PART], ""),
    (416, ["If-Match: TAG", "Range: bytes=9999-"], ""),
    (412, ['If-Match: "x"', "Range: bytes=9999-"], ""),
]


def conditional(port: int, method: str) -> list[int]:
    """Return the status of each row."""
    with Client(port) as client:
        headers = client.ask("/hello.txt").headers
    statuses = []
    for _, lines, _ in CONDITIONS:
        words = "\r\n".join([f"{method} /hello.txt HTTP/1.1", "Host: x", *lines])
        words = words.replace("TAG", headers["etag"])
        words = words.replace("DATE", headers["last-modified"])
        with Client(port) as client:
            client.send(f"{words}\r\n\r\n".encode())
            statuses.append(client.read(method).status)
    return statuses


def without_ranges(status: int) -> int:
    return 200 if status in (206, 416) else status


def test_conditions_are_evaluated_in_order(server: Server) -> None:
    asked = [lines for _, lines, _ in CONDITIONS]
    expected = [status for status, _, _ in CONDITIONS]
    got = conditional(server.port, "GET")
    assert dict(enumerate(zip(got, asked))) == dict(enumerate(zip(expected, asked)))
    heads = [without_ranges(status) for status in expected]
    assert conditional(server.port, "HEAD") == heads


def test_conditions_are_nginx_own(tree: Path, tmp_path: Path) -> None:
    """The table has nginx's results, except in rows that it marks."""
    with started(NginxFiles(tree, tmp_path)) as nginx:
        got = conditional(nginx.port, "GET")
    wrong = [
        (row, theirs)
        for row, theirs in zip(CONDITIONS, got, strict=True)
        if (theirs != row[0]) != bool(row[2])
    ]
    assert not wrong


def test_a_listing_has_neither_tag_nor_date(server: Server) -> None:
    with server.client() as client:

        def status(**conditions: str) -> int:
            return client.ask("/list/", **conditions).status

        assert status(If_Match="*") == 200
        assert status(If_Match='"x"') == 412
        assert status(If_None_Match="*") == 304
        assert status(If_None_Match='"x"') == 200
        assert status(If_Modified_Since=FUTURE) == 200
        assert status(If_Unmodified_Since=PAST) == 200
        assert client.ask("/none", If_Match='"x"').status == 404
        assert client.ask("/none", If_None_Match="*").status == 404


def test_not_modified_names_the_version(server: Server) -> None:
    with server.client() as client:
        etag = client.ask("/hello.txt").headers["etag"]
        answer = client.ask("/hello.txt", If_None_Match=etag)
        assert (answer.headers["etag"], answer.body) == (etag, b"")
        assert client.ask("/hello.txt").body == HELLO


# Folders


def test_a_folder_is_its_index(server: Server) -> None:
    assert server.get("/folder/").body == b"index"


@pytest.mark.parametrize(
    ("target", "location"),
    [
        ("/folder", "/folder/"),
        ("/folder?a=b", "/folder/?a=b"),
        ("//folder", "/folder/"),
        ("/list/sub", "/list/sub/"),
    ],
)
def test_a_folder_without_slash_moves(
    server: Server, target: str, location: str
) -> None:
    answer = server.get(target)
    assert (answer.status, answer.headers["location"]) == (301, location)


def test_a_listing_is_sorted_and_escaped(server: Server) -> None:
    answer = server.get("/list/")
    text = answer.body.decode()
    assert answer.status == 200
    assert re.findall(r'href="([^"]*)"', text) == [
        "../",
        "./%3Ci%3E%26%22%27.txt",
        "./a",
        "./b",
        "./c%3Ad",
        "./sub/",
    ]
    assert "&lt;i&gt;&amp;&quot;&#39;.txt" in text
    assert "<i>" not in text
    assert "Index of /list/" in text


def test_a_listing_of_1000_files(server: Server) -> None:
    text = server.get("/many/").body.decode()
    names = re.findall(r'href="\./([^"]*)"', text)
    assert names == [f"file-{i:04}" for i in range(1000)]


def test_a_folder_named_index_is_listed(server: Server) -> None:
    assert 'href="./index.html/"' in server.get("/odd/").body.decode()


def test_the_root_is_listed(server: Server) -> None:
    text = server.get("/").body.decode()
    assert "hello.txt" in text
    assert ".hidden" not in text
    assert "../" not in text


# Refused requests


@pytest.mark.parametrize(
    ("target", "status"),
    [
        ("/none", 404),
        ("/hello.txt/", 404),
        ("/hello.txt/x", 404),
        ("/" + "x" * 300, 404),
        ("/.hidden", 404),
        ("/../secret", 403),
        ("/folder/../../secret", 403),
        ("/%2e%2e/secret", 403),
        ("/..%2fsecret", 403),
        ("/folder/%2E%2E/%2e./secret", 403),
        ("/up/secret", 403),
        ("/outside", 403),
        ("/absolute", 403),
        ("/pipe", 403),
        ("/hello.txt%00.html", 400),
        ("/%zz", 400),
        ("/%2", 400),
        ("/..\\secret", 404),
    ],
)
def test_only_files_below_the_folder_are_served(
    server: Server, target: str, status: int
) -> None:
    answer = server.get(target)
    assert answer.status == status
    assert b"secret" not in answer.body


def test_an_absolute_name_is_below_the_folder(server: Server, tree: Path) -> None:
    assert server.get(f"/{tree.parent}/secret").status == 404
    assert server.get(f"{tree.parent}/secret").status == 404


def test_links_inside_are_followed(server: Server) -> None:
    assert server.get("/inside").body == b"index"


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "OPTIONS"])
def test_other_methods_are_refused(server: Server, method: str) -> None:
    with server.client() as client:
        answer = client.ask("/hello.txt", method)
        assert (answer.status, answer.headers["allow"]) == (405, "GET, HEAD")
        assert client.ask("/hello.txt").status == 200


@pytest.mark.parametrize(
    ("data", "status"),
    [
        (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", 400),
        (b"GET /hello.txt HTTP/1.1\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\nHost : a\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\nHost: a\r\nContent-Length: x\r\n\r\n", 400),
        (
            b"GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n"
            b"Transfer-Encoding: chunked\r\n\r\n",
            400,
        ),
        (b"GET x HTTP/1.1\r\nHost: a\r\n\r\n", 400),
        (b"GET / HTTP/3.0\r\nHost: a\r\n\r\n", 505),
        (b"BREW / HTTP/1.1\r\nHost: a\r\n\r\n", 501),
        (
            b"GET / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip, chunked\r\n\r\n",
            501,
        ),
        (b"GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 2000000\r\n\r\n", 413),
        (b"GET /" + b"x" * 20000 + b" HTTP/1.1\r\nHost: a\r\n\r\n", 414),
        (b"GET / HTTP/1.1\r\nHost: a\r\nX: " + b"x" * 20000 + b"\r\n\r\n", 431),
        (b"GET / HTTP/1.1\r\nHost: a\r\n" + b"X: x\r\n" * 5000 + b"\r\n", 431),
    ],
)
def test_bad_requests_get_the_right_status(
    server: Server, data: bytes, status: int
) -> None:
    with server.client() as client:
        client.send(data)
        answer = client.read()
        assert answer.status == status
        assert answer.headers["connection"] == "close"
        client.socket.shutdown(socket.SHUT_WR)
        assert client.closed()
    assert server.get("/hello.txt").status == 200


def test_the_limits_are_options(start: Start) -> None:
    server = start("--max-header", "300", "--max-body", "10")
    with server.client() as client:
        assert client.ask("/hello.txt", X="x" * 100).status == 200
        client.send(b"GET /empty HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\n")
        client.send(b"0123456789")
        assert client.read().status == 200
    assert server.get("/hello.txt", X="x" * 300).status == 431
    # Empty lines before a request don't count, whether they arrive together with it or
    # not.
    head = b"GET /hello.txt HTTP/1.1\r\nHost: a\r\nX: "
    head += b"x" * (300 - len(head) - 4) + b"\r\n\r\n"
    with server.client() as client:
        client.send(b"\r\n\r\n" + head)
        assert client.read().status == 200
        client.send(b"\r\n\r\n" + head.replace(b"x\r", b"xx\r"))
        assert client.read().status == 431
    chunked = b"b\r\n0123456789a\r\n0\r\n\r\n"
    head = b"GET / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"
    assert server.talk(head + chunked).status == 413


def test_a_long_head_within_the_limit(server: Server) -> None:
    with server.client() as client:
        assert client.ask("/hello.txt", X="x" * 12000).body == HELLO
        assert client.ask("/hello.txt").body == HELLO


def test_a_body_that_waits_for_100_continue_gets_an_answer(server: Server) -> None:
    data = b"Expect: 100-continue\r\nContent-Length: 5\r\n\r\n"
    answer = server.talk(b"POST / HTTP/1.1\r\nHost: a\r\n" + data)
    assert (answer.status, answer.headers["connection"]) == (405, "close")
