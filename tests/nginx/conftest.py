# SPDX-License-Identifier: MIT
"""The servers of the tests in this folder."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from fixtures import works
from nginxes import CORES, KERNEL_CORES, Nginx, make_files
from programs import started


@pytest.fixture(scope="module")
def shared() -> Iterator[Path]:
    # The workers of root's nginx run as "nobody", who can't enter the tests' folders.
    with tempfile.TemporaryDirectory(prefix="flexsc-nginx-") as name:
        folder = Path(name)
        folder.chmod(0o755)
        make_files(folder)
        yield folder


@pytest.fixture(scope="module")
def stock(shared: Path) -> Iterator[Nginx]:
    with started(Nginx(shared / "stock", shared, load=False)) as server:
        yield server


@pytest.fixture(scope="module")
def nginx(shared: Path) -> Iterator[Nginx]:
    with started(Nginx(shared / "module", shared, load=True)) as server:
        if "without io_uring" in server.errors():
            assert not works("uring"), server.errors()
            pytest.skip("io_uring doesn't work here")
        yield server


@pytest.fixture(scope="module")
def keeping(shared: Path, nginx: Nginx) -> Iterator[Nginx]:
    """An nginx that keeps files open, but so few that they replace each other."""
    with started(Nginx(shared / "keeping", shared, load=True, keep=4)) as server:
        yield server


@pytest.fixture(scope="module")
def apart(shared: Path, nginx: Nginx) -> Iterator[Nginx]:
    """An nginx whose calls execute on another core than its worker."""
    if len(CORES) < 2:
        pytest.skip("needs two cores")
    one = Nginx(shared / "apart", shared, load=True, keep=4, more=KERNEL_CORES)
    with started(one) as server:
        yield server


@pytest.fixture(params=["nginx", "keeping", "apart"])
def either(request: pytest.FixtureRequest) -> Nginx:
    server: Nginx = request.getfixturevalue(request.param)
    return server


@pytest.fixture(params=["", KERNEL_CORES], ids=["own", "apart"])
def own(shared: Path, nginx: Nginx, request: pytest.FixtureRequest) -> Iterator[Nginx]:
    """An nginx that the test may end."""
    if request.param and len(CORES) < 2:
        pytest.skip("needs two cores")
    folder = Path(tempfile.mkdtemp(dir=shared))
    folder.chmod(0o755)
    one = Nginx(folder / "own", shared, load=True, more=request.param)
    with started(one) as server:
        yield server
