# SPDX-License-Identifier: MIT
"""The study's files and sessions: sizes, popularity, and reproducibility by the seed."""

from __future__ import annotations

import hashlib
import shutil
import statistics
from pathlib import Path
from types import SimpleNamespace

import pytest
from flexbench.samples import BenchError
from flexstudy.webserver import fileset, workload
from flexstudy.webserver.fileset import File
from flexstudy.webserver.workload import Options, Popularity

MIB = 1 << 20


# The files.


def test_the_set_has_the_size_of_the_paper_s() -> None:
    files = list(fileset.classes(fileset.FOLDERS))
    assert len(files) == len({file.name for file in files}) == 24_480
    assert sum(file.bytes for file in files) == 3_481_239_600


def test_a_name_tells_the_bytes() -> None:
    largest = fileset.filed(0, 3, 9)
    assert len(fileset.content(largest)) == 921_600
    # Files of the same size differ, and so do the pieces of one file.
    one, other = (fileset.content(fileset.filed(n, 1, 1)) for n in (0, 1))
    assert len(one) == len(other) == 1024
    assert one != other
    assert one[:512] != one[512:]
    # Clients of other versions and in other languages must produce the same bytes.
    assert one[:8].hex() == "7e5900092bf6c286"
    digest = hashlib.sha256(fileset.sheet()).hexdigest()
    assert digest[:16] == "8ac7d950c3f8a5cc"


def test_files_that_are_right_are_kept(tmp_path: Path) -> None:
    files = [*fileset.classes(1), fileset.page(64)]
    root = tmp_path / "new" / "files"
    assert fileset.write(root, files) == 37
    assert (root / "pages/64").read_bytes() == fileset.content(File("pages/64", 64))
    was = {path: path.stat().st_mtime_ns for path in root.rglob("*_*")}
    assert fileset.write(root, files) == 0
    shorter = root / "dir00000/class1_2"
    shorter.write_bytes(shorter.read_bytes()[:-1])
    other = root / "dir00000/class2_9"
    other.write_bytes(bytes(92_160))
    (root / "dir00000/class0_1").unlink()
    assert fileset.write(root, files) == 3
    now = {path: path.stat().st_mtime_ns for path in root.rglob("*_*")}
    assert len([path for path in was if now[path] != was[path]]) == 3
    for file in files:
        assert (root / file.name).read_bytes() == fileset.content(file)


def test_a_disk_without_room_is_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=1000))
    reason = "the files need 1,024 bytes more, but only 1,000 are free: "
    with pytest.raises(BenchError, match=reason):
        fileset.write(tmp_path, [fileset.page(1024)])
    assert list(tmp_path.iterdir()) == []
    assert fileset.write(tmp_path, [fileset.page(960)]) == 1


# Popularity.


def test_draws_have_the_shares() -> None:
    popularity, chance = Popularity(10), workload.Draw(1)
    drawn = [popularity.draw(chance) for _ in range(100_000)]
    counts: dict[str, int] = {}
    for file in drawn:
        counts[file.name] = counts.get(file.name, 0) + 1
    for share, file in popularity.all():
        # Five standard deviations.
        off = 5 * (share * len(drawn)) ** 0.5 + 5
        assert abs(counts.get(file.name, 0) - share * len(drawn)) < off


# Sessions.


def test_sessions_have_the_study_s_means() -> None:
    found = list(workload.sessions("specweb", Options(folders=64, sessions=20_000)))
    pages, thoughts = [], []
    for session in found:
        assert session[-1].think == 0
        thoughts += [request.think for request in session[:-1]]
        pages.append(1 + sum(request.think == 3.0 for request in session))
    assert set(thoughts) == {0.343, 3.0}
    assert min(pages) == 1
    assert statistics.fmean(pages) == pytest.approx(5, rel=0.05)
    requests = sum(map(len, found))
    assert requests / sum(pages) == pytest.approx(1 + 3, rel=0.05)
    # The standard deviation of a geometric distribution from 1 is mean x sqrt(1 - 1 /
    # mean).
    assert statistics.pstdev(pages) == pytest.approx(5 * 0.8**0.5, rel=0.05)


def test_a_seed_decides_for_ever() -> None:
    drawn = workload.sessions("specweb", Options(folders=64, sessions=1000))
    text = "".join("".join(map(workload.line, one)) + "\n" for one in drawn)
    assert hashlib.sha256(text.encode()).hexdigest()[:16] == "d36547958c3ba62a"


def test_pages_are_all_equally_likely() -> None:
    found = list(workload.sessions("pages", Options(sessions=1000)))
    assert {len(session) for session in found} == {20}
    sizes = [request.file.bytes for session in found for request in session]
    assert (min(sizes), max(sizes)) == (64, 8192)
    assert len(set(sizes)) == 128
    assert statistics.fmean(sizes) == pytest.approx(4128, rel=0.03)
