# SPDX-License-Identifier: MIT
"""flexbench's study with files that aren't in memory: the cgroup of the servers."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest
from flexbench.samples import BenchError
from flexstudy.webserver import cgroup, disk, fileset, workload
from flexstudy.webserver.cgroup import ONE, TWO, Group, Names

PATIENCE_S = 10


# The files.


def test_nine_of_ten_requests_are_for_the_popular_files() -> None:
    popularity = workload.Popularity(10)
    shares = {file.name: share for share, file in popularity.all()}
    files = disk.popular(10)
    got = sum(shares[file.name] for file in files)
    # One file less wouldn't do; and the most popular one is the last.
    assert got >= disk.SHARE > got - shares[files[0].name]
    assert shares[files[-1].name] == max(shares.values())
    size = sum(file.bytes for file in files)
    # Of files with equal shares either may be the last one that is needed.
    assert size == pytest.approx(workload.working_set(popularity, disk.SHARE), rel=0.05)


def test_files_are_read_by_a_process_of_the_group(tmp_path: Path) -> None:
    files = [fileset.page(64), fileset.page(128)]
    fileset.write(tmp_path / "root", files)
    procs = tmp_path / "cgroup.procs"
    group = Group(ONE, tmp_path, tmp_path)
    disk.forget(tmp_path / "root", files)
    disk.remember(group, tmp_path / "root", files)
    assert int(procs.read_text()) > 0
    with pytest.raises(BenchError, match="reading the files: .*pages/192"):
        disk.remember(group, tmp_path / "root", [fileset.page(192)])


# The group.


def written(folder: Path, **files: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        (folder / name.replace("__", ".")).write_text(text)


def test_reads_are_counted_in_both_versions() -> None:
    one = "254:0 Read 17\n254:0 Write 5\n254:0 Total 22\n8:0 Read 3\nTotal 25\n"
    assert cgroup.reads_of(one) == 20
    two = "254:0 rbytes=4096 wbytes=0 rios=17 wios=5 dbytes=0 dios=0\n8:0 rios=3\n"
    assert cgroup.reads_of(two) == 20
    assert cgroup.reads_of("Total 0\n") == 0


@pytest.mark.parametrize(
    ("names", "limit"),
    [(ONE, "254:0 500"), (TWO, "254:0 riops=500")],
)
def test_a_group_has_limits(tmp_path: Path, names: Names, limit: str) -> None:
    group = Group(names, tmp_path, tmp_path)
    written(tmp_path, memory__stat=f"other 1\n{names.files} 3000\n")
    written(tmp_path, **{names.usage: "5000\n"})
    group.limit_files(10_000)
    # What the processes have beside the files comes on top.
    assert (tmp_path / names.limit).read_text() == "12000"
    group.limit_reads("254:0", 500)
    assert (tmp_path / names.reads).read_text() == limit
    group.add(17)
    assert (tmp_path / "cgroup.procs").read_text() == "17"


@pytest.mark.parametrize("names", [ONE, TWO])
def test_the_limit_follows_the_processes(tmp_path: Path, names: Names) -> None:
    group = Group(names, tmp_path, tmp_path)
    written(tmp_path, memory__stat=f"{names.files} 0\n", **{names.usage: "0"})
    limit = tmp_path / names.limit
    oom = tmp_path / cgroup.OOM
    with cgroup.kept(group, 1000, list(os.sched_getaffinity(0))):
        assert limit.read_text() == "1000"
        assert oom.exists() == (names is ONE)
        written(tmp_path, **{names.usage: "500"})
        until = time.monotonic() + PATIENCE_S
        while limit.read_text() != "1500" and time.monotonic() < until:
            time.sleep(0.01)
        assert limit.read_text() == "1500"
    assert not oom.exists() or oom.read_text() == "0"


def fake(monkeypatch: pytest.MonkeyPatch, at: Path, mounts: str, own: str) -> None:
    written(at, mounts=mounts, cgroup=own)
    monkeypatch.setattr(cgroup, "PROC", at)


def test_version_1_has_a_folder_for_each_controller(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    mounts = (
        "tmpfs /sys tmpfs rw 0 0\ncgroup /c/memory cgroup rw,memory 0 0\n"
        "cgroup /c/io cgroup rw,blkio 0 0\ncgroup2 /c/unified cgroup2 rw 0 0\n"
    )
    fake(monkeypatch, tmp_path, mounts, "4:memory:/mine/too\n7:blkio:/\n0::/\n")
    memory, io = Path("/c/memory/mine/too/name"), Path("/c/io/name")
    assert cgroup.group("name") == Group(ONE, memory, io)
    assert cgroup.group("name").folders() == [memory, io]


def test_version_2_has_one_folder_below_the_root(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    root = tmp_path / "c"
    written(root, cgroup__controllers="cpu io memory\n", cgroup__subtree_control="")
    fake(monkeypatch, tmp_path, f"cgroup2 {root} cgroup2 rw 0 0\n", "0::/mine\n")
    found = cgroup.group("name")
    assert found == Group(TWO, root / "name", root / "name")
    assert found.folders() == [root / "name"]
    assert (root / "cgroup.subtree_control").read_text() == "+memory +io"


@pytest.mark.parametrize("controllers", ["cpu\n", None])
def test_a_machine_without_cgroups_is_one_line(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, controllers: str | None
) -> None:
    mounts = ""
    if controllers:
        written(tmp_path / "c", cgroup__controllers=controllers)
        mounts = f"cgroup2 {tmp_path / 'c'} cgroup2 rw 0 0\n"
    fake(monkeypatch, tmp_path, mounts, "0::/\n")
    with pytest.raises(BenchError, match="there are no cgroups that limit memory and"):
        cgroup.group("name")


def test_an_ordinary_user_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    with (
        pytest.raises(
            BenchError, match="limits of memory and of the disk's reads take"
        ),
        cgroup.made(),
    ):
        pass


def test_a_group_goes_away(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    (tmp_path / "memory").mkdir()
    (tmp_path / "io").mkdir()
    found = Group(ONE, tmp_path / "memory/name", tmp_path / "io/name")
    monkeypatch.setattr(cgroup, "group", lambda _: found)
    with cgroup.made() as group:
        assert group.memory.is_dir()
        assert group.io.is_dir()
    assert list(tmp_path.glob("*/*")) == []
    (tmp_path / "io").rmdir()
    with (
        pytest.raises(BenchError, match="cgroups: .*/io/name: No such file"),
        cgroup.made(),
    ):
        pass
    assert not found.memory.exists()


def test_a_file_is_on_a_disk(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    number = tmp_path.stat().st_dev
    name = f"{os.major(number)}:{os.minor(number)}"
    monkeypatch.setattr(cgroup, "DEVICES", tmp_path)
    with pytest.raises(BenchError, match="isn't on a disk: choose another folder by"):
        cgroup.device_of(tmp_path)
    written(tmp_path / "disk", dev="8:0\n")
    written(tmp_path / "disk/part", dev=f"{name}\n")
    (tmp_path / name).symlink_to(tmp_path / "disk/part")
    assert cgroup.device_of(tmp_path) == name
    written(tmp_path / "disk/part", partition="1\n")
    assert cgroup.device_of(tmp_path) == "8:0"
