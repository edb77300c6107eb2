# SPDX-License-Identifier: MIT
"""flexsc serve and nginx, both with a worker for each of the server's cores, serving
the same folder on free ports of the network. Each runs for the duration of a
with-block.
"""

from __future__ import annotations

import grp
import os
import pwd
import re
import resource
import selectors
import ssl
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from . import quiet, tools
from .network import Network, visit
from .runner import Plan
from .samples import BenchError

WITH_MODULE = "module"  # name of the variant: nginx with the module
START_S = 60
STOP_S = 10
DESCRIPTORS = 65536
BACKLOG = (
    2**31 - 1
)  # the kernel limits it to net.core.somaxconn; as in the study's servers

# Debian's defaults, except for the needs of a measurement: no daemon, no log, a worker
# per core, its own folder, kept connections, and as many connections as descriptors
# permit.
NGINX = """\
{load}{user}daemon off;
worker_processes {workers};
{affinity}worker_rlimit_nofile {descriptors};
pid {folder}/nginx.pid;
error_log {folder}/error.log warn;
events {{
	worker_connections {connections};
}}
http {{
	sendfile on;
	tcp_nopush on;
	tcp_nodelay on;
	types_hash_max_size 2048;
	default_type application/octet-stream;
	access_log off;
	gzip on;
	keepalive_timeout 65;
	keepalive_requests 1000000000;
	client_body_temp_path {folder}/body;
	proxy_temp_path {folder}/proxy;
	fastcgi_temp_path {folder}/fastcgi;
	uwsgi_temp_path {folder}/uwsgi;
	scgi_temp_path {folder}/scgi;
{cache}{on}	server {{
		listen {address}:{port}{tls} backlog={backlog};
		root {root};
{server}	}}
{upstream}}}
"""
NGINX_CACHE = """\
	open_file_cache max=1000;
	open_file_cache_valid 60s;
"""
NGINX_TLS = """\
		ssl_certificate {certificate};
		ssl_certificate_key {certificate}.key;
"""
# Keeps connections to the backend, because making them would dominate the cost.
NGINX_PROXY = """\
		location / {
			proxy_pass http://backend;
			proxy_http_version 1.1;
			proxy_set_header Connection "";
		}
"""
NGINX_BACKEND = """\
	upstream backend {{
		server {backend};
		keepalive 256;
	}}
"""


@dataclass(frozen=True)
class Server:
    """A running server. pid: the serving process, or the parent of the serving
    processes.
    """

    name: str
    url: str
    pid: int


@dataclass(frozen=True)
class Module:
    """The module for nginx, and the number of files that it keeps open. kernel_cores: the
    cores that execute its calls; empty: the workers' own cores.
    """

    path: Path
    keep: int
    kernel_cores: Sequence[int] = ()


def module(flexsc: str) -> Path:
    """The module's path, next to the command in the build folder, or where both are
    installed.
    """
    above = Path(tools.need(flexsc)).resolve().parents
    name = "ngx_http_flexsc_module.so"
    places = [above[1] / "nginx", *above[1].glob("lib*/nginx/modules")]
    places += above[1].glob("lib/*/nginx/modules")
    for place in places:
        if (place / name).is_file():
            return place / name
    raise BenchError(f"{name} is missing: install nginx-dev, and build it")


@dataclass(frozen=True)
class Place:
    """Where a server runs: its folder, and the address and port that it listens on."""

    folder: Path
    address: str
    port: int


def place(network: Network, folder: Path) -> Place:
    folder.mkdir(exist_ok=True)
    return Place(folder, network.address, network.free_port())


@dataclass(frozen=True)
class Site:
    """What an nginx serves: the folder root, or, with a backend, the backend's answers."""

    root: Path
    cached: bool = False
    module: Module | None = None
    certificate: Path | None = None  # its key is in the same folder
    backend: str = ""  # ADDRESS:PORT


def pinned(cores: int | str, command: list[str]) -> list[str]:
    return [tools.need("taskset"), "-c", str(cores), *command]


def listed(cores: Sequence[int]) -> str:
    return ",".join(str(core) for core in cores)


def end(started: subprocess.Popen[str], seconds: float) -> None:
    """End a process, by force if it doesn't end within so many seconds."""
    started.terminate()
    try:
        started.wait(seconds)
    except subprocess.TimeoutExpired:
        started.kill()
        started.wait()


@contextmanager
def process(
    name: str,
    command: list[str],
    stdout: int = subprocess.DEVNULL,
    stderr: int | IO[str] = subprocess.PIPE,
    stop_s: float = STOP_S,
) -> Iterator[subprocess.Popen[str]]:
    started = subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=stdout, stderr=stderr, text=True
    )
    try:
        yield started
        if started.poll() is not None:
            raise BenchError(
                f"{name} ended during the measurement, with "
                f"status {started.returncode}"
            )
    finally:
        end(started, stop_s)
        for stream in (started.stdout, started.stderr):
            if stream:
                stream.close()


def line_within(stream: IO[str], seconds: float) -> str:
    """The next line, or "" if none begins within so many seconds."""
    with selectors.DefaultSelector() as selector:
        selector.register(stream, selectors.EVENT_READ)
        return stream.readline() if selector.select(seconds) else ""


def text_until(
    stream: IO[str], pattern: str, seconds: float
) -> tuple[re.Match[str] | None, str]:
    """Read until the text matches the pattern, for at most so many seconds."""
    end, text = time.monotonic() + seconds, ""
    with selectors.DefaultSelector() as selector:
        # Not with readline(), because the selector doesn't see buffered lines.
        selector.register(stream, selectors.EVENT_READ)
        while not (found := re.search(pattern, text)):
            if not selector.select(max(0, end - time.monotonic())):
                break
            more = os.read(stream.fileno(), 4096)
            if not more:
                break
            text += more.decode(errors="replace")
    return found, text


@contextmanager
def flexsc(
    plan: Plan, root: Path, cache: int, options: Sequence[str] = ()
) -> Iterator[Server]:
    cores, net = listed(plan.cores.server), plan.network
    args = [*net.server, plan.flexsc, "serve", str(root), "-p", "0"]
    args += ["-b", net.address, "-j", str(len(plan.cores.server))]
    if cache:
        args += ["--cache", str(cache)]
    args += options
    with process("flexsc serve", pinned(cores, args)) as started:
        assert started.stderr
        # Notes on the engine and its cores may precede the address.
        where = rf"http://{re.escape(net.address)}:\d+/"
        found, text = text_until(started.stderr, where, START_S)
        if not found:
            raise BenchError(
                f"flexsc serve didn't start: {text.strip() or 'no output'}"
            )
        yield Server("flexsc", found[0], started.pid)


def descriptors() -> int:
    """The number of descriptors that a server may have."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    endless = hard == resource.RLIM_INFINITY
    return DESCRIPTORS if endless else min(hard, DESCRIPTORS)


def affinity(cores: Sequence[int]) -> str:
    """The line of nginx' configuration that pins each of several workers to its own
    core; empty for one worker.
    """
    mask = sum(1 << core for core in cores)
    return f"worker_cpu_affinity auto {mask:b};\n" if len(cores) > 1 else ""


def module_lines(module: Module) -> str:
    text = f"\tflexsc on;\n\tflexsc_keep {module.keep};\n"
    if module.kernel_cores:
        text += f"\tflexsc_kernel_cores {listed(module.kernel_cores)};\n"
    return text


def nginx_config(place: Place, site: Site, cores: Sequence[int] = (0,)) -> str:
    """cores: nginx gets a worker for each."""
    user, module = "", site.module
    if os.geteuid() == 0:
        # nginx' worker gets the same user as flexsc serve.
        name = pwd.getpwuid(0).pw_name
        user = f"user {name} {grp.getgrgid(0).gr_name};\n"
    return NGINX.format(
        load=f"load_module {module.path};\n" if module else "",
        on=module_lines(module) if module else "",
        user=user,
        workers=len(cores),
        affinity=affinity(cores),
        descriptors=descriptors(),
        # A quarter of the descriptors is left for files.
        connections=descriptors() * 3 // 4,
        folder=place.folder,
        root=site.root,
        address=place.address,
        port=place.port,
        cache=NGINX_CACHE if site.cached else "",
        tls=" ssl" if site.certificate else "",
        backlog=BACKLOG,
        server=(
            NGINX_TLS.format(certificate=site.certificate) if site.certificate else ""
        )
        + (NGINX_PROXY if site.backend else ""),
        upstream=NGINX_BACKEND.format(backend=site.backend) if site.backend else "",
    )


def children(pid: int) -> list[int]:
    """The children of a process' first thread. None if the process has ended."""
    path = Path(f"/proc/{pid}/task/{pid}/children")
    try:
        return [int(child) for child in path.read_text(encoding="ascii").split()]
    except OSError:
        return []


def family(pid: int) -> list[int]:
    """A server's process and its copies."""
    return [pid, *children(pid)]


def clock_s(server: Server) -> float:
    """The processor time of a server's process and its copies."""
    return sum(quiet.clock_s(pid) for pid in family(server.pid))


def worker_of(name: str, master: int, count: int = 1) -> int:
    """The process id of the only child of a server's master process. With a count above
    1, the id of the master process, as soon as it has so many children.
    """
    until = time.monotonic() + START_S
    while time.monotonic() < until and Path(f"/proc/{master}").exists():
        workers = children(master)
        if len(workers) >= count:
            return workers[0] if count == 1 else master
        time.sleep(0.05)
    raise BenchError(f"{name} didn't start {'a worker' if count == 1 else 'workers'}")


def nginx_arguments(where: Place, site: Site, cores: Sequence[int] = (0,)) -> list[str]:
    """Write nginx' configuration. Returns the command's arguments."""
    folder, config = str(where.folder), where.folder / "nginx.conf"
    config.write_text(nginx_config(where, site, cores), encoding="utf-8")
    return ["-p", folder, "-c", str(config), "-e", f"{folder}/error.log"]


@contextmanager
def nginx(
    plan: Plan, name: str, folder: Path, site: Site, core: int | str | None = None
) -> Iterator[Server]:
    """A running nginx. core: one core or more, in taskset's form, for an nginx with one
    worker. None: a worker for each core of the plan's server.
    """
    where = place(plan.network, folder)
    cores = plan.cores.server if core is None else [0]
    arguments = nginx_arguments(where, site, cores)
    args = [*plan.network.server, tools.need("nginx"), *arguments]
    if core is None:
        core = listed(cores)
    with process(name, pinned(core, args)) as started:
        scheme = "https" if site.certificate else "http"
        url = f"{scheme}://{where.address}:{where.port}/"
        yield Server(name, url, worker_of(name, started.pid, len(cores)))


def check(
    network: Network,
    server: Server,
    name: str,
    content: bytes,
    certificate: Path | None = None,
) -> None:
    """Raise BenchError unless the server's answer is exactly the file."""
    until = time.monotonic() + START_S
    client = urllib.request.build_opener(
        urllib.request.ProxyHandler({}),
        urllib.request.HTTPSHandler(
            context=ssl.create_default_context(cafile=certificate)
        ),
    )
    while True:
        try:
            with (
                visit(network.client),
                client.open(server.url + name, timeout=5) as answer,
            ):
                found = answer.read()
            break
        except urllib.error.HTTPError as error:
            raise BenchError(f"{server.name}: {name}: the answer is {error}") from error
        except OSError as error:
            # The server's port may not be open yet.
            if time.monotonic() > until:
                raise BenchError(f"{server.name} doesn't answer: {error}") from error
            time.sleep(0.05)
    if found != content:
        raise BenchError(f"{server.name}: {name}: the answer isn't the file's content")
