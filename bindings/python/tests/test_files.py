# SPDX-License-Identifier: MIT
"""File calls behave as the built-ins do, with every engine."""

from __future__ import annotations

import asyncio
import errno
import os
import stat
from pathlib import Path

import flexsc
import pytest
from conftest import PATIENCE, Run


def test_what_is_written_is_read(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "file"

    async def main() -> None:
        async with flexsc.open(path, "wb+") as file:
            assert await file.write(b"hello world") == 11
            assert await file.tell() == 11
            assert await file.seek(0) == 0
            assert await file.read(5) == b"hello"
            assert await file.read(100) == b" world"
            assert await file.read(100) == b""
            assert await file.seek(-5, os.SEEK_END) == 6
            assert await file.read() == b"world"
            assert await file.read() == b""
            assert await file.read(0) == b""
        assert file.closed

    run(main)
    assert path.read_bytes() == b"hello world"


@pytest.mark.parametrize("size", [0, 1, 4096, 65536, 100_000, 1_000_001])
def test_all_of_a_file_is_read_and_written(run: Run, tmp_path: Path, size: int) -> None:
    data = os.urandom(size)

    async def main() -> bytes:
        async with flexsc.open(tmp_path / "file", "wb") as file:
            assert await file.write(data) == size
        async with flexsc.open(tmp_path / "file") as file:
            return await file.read()

    assert run(main) == data


def test_offsets_leave_the_position_alone(run: Run, tmp_path: Path) -> None:
    async def main() -> None:
        async with flexsc.open(tmp_path / "file", "xb+") as file:
            assert await file.pwrite(b"bcd", 1) == 3
            assert await file.pwrite(b"a", 0) == 1
            assert await file.pread(2, 2) == b"cd"
            assert await file.pread(10, 3) == b"d"
            assert await file.pread(10, 4) == b""
            assert await file.tell() == 0
            await file.truncate(2)
            assert await file.read() == b"ab"
            await file.fdatasync()
            await file.fsync()

    run(main)


def test_the_position_is_moved(run: Run, tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"0123456789")

    async def main() -> None:
        async with flexsc.open(tmp_path / "file", "rb+") as file:
            assert await file.seek(4) == 4
            assert await file.seek(3, os.SEEK_CUR) == await file.tell() == 7
            assert await file.write(b"ab") == 2
            assert await file.seek(-6, os.SEEK_CUR) == 3
            assert await file.read(4) == b"3456"
            assert await file.seek(2, os.SEEK_END) == 12
            assert await file.read() == b""
            assert await file.seek(1, os.SEEK_DATA) == 1
            assert await file.readinto(bytearray(3)) == 3
            assert await file.tell() == 4
            for wrong in ((-1, os.SEEK_SET), (-5, os.SEEK_CUR), (-99, os.SEEK_END)):
                with pytest.raises(OSError) as found:
                    await file.seek(*wrong)
                assert found.value.errno == errno.EINVAL
            assert await file.read() == b"456ab9"

    run(main)


def test_one_call_at_a_time_uses_the_position(run: Run, tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"0123456789")

    async def main() -> None:
        async with flexsc.open(tmp_path / "file", "rb+") as file:
            first = file.read(2)
            for use in (file.read, lambda: file.write(b"x"), lambda: file.seek(0)):
                with pytest.raises(RuntimeError, match="position"):
                    use()
            assert await file.pread(1, 9) == b"9"
            assert await first == b"01"
            with pytest.raises(TypeError):
                file.write("text")  # type: ignore[arg-type]
            cancelled = file.read(2)
            cancelled.cancel()
            with pytest.raises(asyncio.CancelledError):
                await cancelled
            await file.seek(2)
            assert await file.read(3) == b"234"

    run(main)


def test_buffers_are_filled_in_place(run: Run, tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"0123456789")

    async def main() -> None:
        async with flexsc.open(tmp_path / "file") as file:
            data = bytearray(b"....")
            assert await file.readinto(data) == 4
            assert data == b"0123"
            rest = memoryview(bytearray(8))
            assert await file.readinto(rest[1:]) == 6
            assert rest == b"\x00456789\x00"
            assert await file.readinto(data) == 0
            with pytest.raises(BufferError):
                await file.readinto(b"fixed")

    run(main)


def test_appending_goes_to_the_end(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"one")

    async def main() -> None:
        async with flexsc.open(path, "ab") as file:
            await file.write(b"two")
            path.write_bytes(path.read_bytes() + b"three")
            await file.write(b"four")
            assert await file.tell() == 15
        async with flexsc.open(path, "ab+") as file:
            assert await file.read(3) == b"one"
            await file.write(b"five")
            assert await file.tell() == 19
            assert await file.seek(3) == 3
            assert await file.read(3) == b"two"

    run(main)
    assert path.read_bytes() == b"onetwothreefourfive"


@pytest.mark.parametrize("mode", ["r", "rt", "rwb", "b", "", "rb++", "rbU"])
def test_other_modes_are_refused(run: Run, mode: str) -> None:
    async def main() -> None:
        with pytest.raises(ValueError, match="mode"):
            flexsc.open("/", mode)

    run(main)


def test_errors_are_those_of_the_built_ins(run: Run, tmp_path: Path) -> None:
    missing = tmp_path / "missing"
    folder = tmp_path / "folder"
    folder.mkdir()

    async def main() -> None:
        with pytest.raises(FileNotFoundError) as found:
            await flexsc.open(missing)
        assert found.value.errno == errno.ENOENT
        assert found.value.filename == str(missing)
        assert found.value.strerror == os.strerror(errno.ENOENT)
        with pytest.raises(FileNotFoundError) as found:
            await flexsc.rename(missing, folder)
        assert found.value.filename == str(missing)
        assert found.value.filename2 == str(folder)
        with pytest.raises(FileExistsError):
            await flexsc.mkdir(folder)
        with pytest.raises(FileExistsError):
            await flexsc.open(folder, "xb")
        with pytest.raises(IsADirectoryError):
            await flexsc.open(folder, "wb")
        with pytest.raises(NotADirectoryError):
            await flexsc.stat("/dev/null/x")
        with pytest.raises(OSError) as long:
            await flexsc.stat("x" * 5000)
        assert long.value.errno == errno.ENAMETOOLONG
        with pytest.raises(ValueError):
            await flexsc.stat("nu\0l")
        with pytest.raises(TypeError):
            await flexsc.stat(1)  # type: ignore[arg-type]
        async with flexsc.open(folder / "file", "wb") as file:
            with pytest.raises(OSError) as read:
                await file.read(1)
            assert read.value.errno == errno.EBADF
            assert read.value.filename is None
            with pytest.raises(OSError) as seek:
                await file.seek(-1)
            assert seek.value.errno == errno.EINVAL

    run(main)


def test_a_closed_file_is_of_no_use(run: Run, tmp_path: Path) -> None:
    async def main() -> None:
        file = await flexsc.open(tmp_path / "file", "wb")
        number = file.fileno()
        os.fstat(number)
        await file.close()
        await file.close()
        with pytest.raises(OSError):
            os.fstat(number)
        for use in (file.read, file.fsync, file.tell, file.stat, file.fileno):
            with pytest.raises(ValueError, match="closed file"):
                use()

    run(main)


def test_a_forgotten_file_is_closed_with_a_warning(run: Run, tmp_path: Path) -> None:
    async def main() -> None:
        file = await flexsc.open(tmp_path / "file", "wb")
        number = file.fileno()
        # Let the callback that resumed this task return: it holds the call and its file.
        await asyncio.sleep(0)
        with pytest.warns(ResourceWarning, match="unclosed file"):
            del file
        with pytest.raises(OSError):
            os.fstat(number)

    run(main)


def test_attributes_are_those_of_os(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"x" * 5000)
    os.utime(path, ns=(1_234_567_890_123_456_789, -5_000_000_001))
    link = tmp_path / "link"
    link.symlink_to("file")

    async def main() -> None:
        for name in (path, link, "/dev/null", os.fsencode(path)):
            for ours, theirs in ((flexsc.stat, os.stat), (flexsc.lstat, os.lstat)):
                got, real = await ours(name), theirs(name)
                for field in dir(real):
                    if field.startswith("st_"):
                        assert getattr(got, field) == getattr(real, field), field
                assert got == real
                assert type(got) is os.stat_result
        async with flexsc.open(path) as file:
            assert await file.stat() == os.stat(path)

    run(main)


def test_names_are_made_and_removed(run: Run, tmp_path: Path) -> None:
    async def main() -> None:
        await flexsc.mkdir(tmp_path / "folder", 0o700)
        assert stat.S_IMODE((tmp_path / "folder").stat().st_mode) == 0o700
        a, b = tmp_path / "folder" / "a", tmp_path / "folder" / "b"
        async with flexsc.open(a, "wb", permissions=0o640):
            pass
        assert stat.S_IMODE(a.stat().st_mode) == 0o640
        await flexsc.link(a, b)
        assert a.samefile(b)
        await flexsc.symlink("a", tmp_path / "folder" / "c")
        assert await flexsc.readlink(tmp_path / "folder" / "c") == "a"
        assert await flexsc.readlink(os.fsencode(tmp_path / "folder" / "c")) == b"a"
        names = await flexsc.listdir(tmp_path / "folder")
        assert sorted(names) == ["a", "b", "c"]
        assert sorted(await flexsc.listdir(os.fsencode(tmp_path / "folder"))) == [
            b"a",
            b"b",
            b"c",
        ]
        await flexsc.rename(b, tmp_path / "folder" / "d")
        for name in ("a", "c", "d"):
            await flexsc.unlink(tmp_path / "folder" / name)
        assert await flexsc.listdir(tmp_path / "folder") == []
        await flexsc.rmdir(tmp_path / "folder")
        with pytest.raises(FileNotFoundError):
            await flexsc.listdir(tmp_path / "folder")
        assert set(await flexsc.listdir()) == set(os.listdir())
        await flexsc.sync()

    run(main)


def test_a_long_folder_is_listed_whole(run: Run, tmp_path: Path) -> None:
    names = {f"{'n' * 100}-{i}" for i in range(2000)}
    for name in names:
        (tmp_path / name).touch()

    async def main() -> list[str]:
        return await flexsc.listdir(tmp_path)

    assert set(run(main)) == names


def test_names_needn_t_be_text(run: Run, tmp_path: Path) -> None:
    odd = os.fsencode(tmp_path) + b"/\xff\xfe"

    async def main() -> None:
        async with flexsc.open(odd, "wb") as file:
            assert file.name == odd
        assert await flexsc.listdir(tmp_path) == [os.fsdecode(b"\xff\xfe")]
        assert (await flexsc.stat(os.fsdecode(odd))).st_size == 0

    run(main)


def test_many_files_at_once(run: Run, tmp_path: Path) -> None:
    async def one(i: int) -> None:
        path = tmp_path / str(i)
        data = str(i).encode() * 100
        async with flexsc.open(path, "wb") as file:
            await file.write(data)
        assert (await flexsc.stat(path)).st_size == len(data)
        async with flexsc.open(path) as file:
            assert await file.read() == data
        await flexsc.unlink(path)

    async def main() -> None:
        await asyncio.gather(*(one(i) for i in range(500)))
        assert flexsc.running_loop().pending == 0

    run(main)
    assert list(tmp_path.iterdir()) == []


def test_a_pipe_gives_what_it_has(run: Run, waits: None, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")

    async def main() -> None:
        reading = flexsc.open(tmp_path / "pipe")
        writing = flexsc.open(tmp_path / "pipe", "wb")
        async with reading as source, writing as sink:
            read = source.read(100)
            await asyncio.sleep(0.01)
            assert not read.done()
            await sink.write(b"short")
            assert await read == b"short"
            # More data than a pipe holds: all is written, however many calls that
            # takes.
            data = os.urandom(1 << 20)
            written = sink.write(data)
            got = b""
            while len(got) < len(data):
                got += await source.read(1 << 16)
            assert await written == len(data)
            assert got == data
            rest = source.read()
            await sink.write(b"the end")
            await sink.close()
            assert await rest == b"the end"

    run(main)


def test_close_ends_a_read_that_waits(run: Run, waits: None) -> None:
    async def main() -> None:
        read, write = os.pipe()
        try:
            file = await flexsc.open(f"/proc/self/fd/{read}")
            reader = file.read(10)
            await asyncio.sleep(0.02)
            assert not reader.done()
            await file.close()
            with pytest.raises(OSError) as raised:
                await asyncio.wait_for(asyncio.shield(reader), PATIENCE)
            assert raised.value.errno == errno.ECANCELED
        finally:
            os.close(read)
            os.close(write)

    run(main)


@pytest.mark.parametrize("mode", ["wb", "ab", "wb+", "ab+", "xb+"])
def test_close_lets_what_was_posted_happen(run: Run, tmp_path: Path, mode: str) -> None:
    """Posted writes happen before the close: a close that overtook a write would end it
    with EBADF."""

    async def main() -> None:
        file = await flexsc.open(tmp_path / "f", mode)
        writes = [file.write(b"x" * 1000)]
        if "a" in mode:
            writes += [file.write(b"x" * 1000) for _ in range(200)]
        synced = file.fsync()
        await file.close()
        assert synced.done()
        assert all(write.done() for write in writes)
        assert sum([await write for write in writes]) == 1000 * len(writes)
        assert (tmp_path / "f").stat().st_size == 1000 * len(writes)
        await synced

    run(main)


def test_a_closing_file_is_read_to_the_end(run: Run, tmp_path: Path) -> None:
    """A file that is being closed is still read to its end, also by parts posted after
    close()."""

    async def main() -> None:
        data = os.urandom(3_000_000)
        (tmp_path / "one").write_bytes(data)
        (tmp_path / "two").write_bytes(b"2" * 9_000_000)
        file = await flexsc.open(tmp_path / "one", "rb")
        read, number = file.read(), file.fileno()
        closing = file.close()
        assert file.closed
        await file.close()
        other = await flexsc.open(tmp_path / "two", "rb")
        assert await read == data
        for use in (file.read, file.tell, lambda: file.seek(1)):
            with pytest.raises(ValueError, match="closed file"):
                use()
        await closing
        with pytest.raises(OSError):
            os.fstat(number)
        await other.close()

    run(main)


def test_a_cancelled_close_waits_and_closes(run: Run, tmp_path: Path) -> None:
    async def main() -> None:
        file = await flexsc.open(tmp_path / "f", "ab+")
        written, number = file.write(b"data"), file.fileno()
        closing = file.close()
        assert closing.cancel()
        with pytest.raises(asyncio.CancelledError):
            await closing
        assert await written == 4
        with pytest.raises(OSError):
            os.fstat(number)

    run(main)


def test_a_closing_file_s_loop_closes(run: Run, tmp_path: Path) -> None:
    """After shutdown() no call can post the close."""

    async def main() -> None:
        file = await flexsc.open(tmp_path / "f", "ab+")
        written, number = file.write(b"data"), file.fileno()
        closing = file.close()
        await flexsc.shutdown()
        with pytest.raises(OSError):
            os.fstat(number)
        for call in (written, closing):
            assert call.done()

    run(main)


def test_a_buffer_may_close_the_file(run: Run, tmp_path: Path) -> None:
    class Closes:
        """Closes the file when write() requests the bytes, after write() has checked
        that the file is open."""

        def __init__(self, file: flexsc.AsyncFile) -> None:
            self.file = file
            self.closing: flexsc.Call[None] | None = None

        def __buffer__(self, flags: int) -> memoryview:
            self.closing = self.file.close()
            return memoryview(b"late")

    async def main() -> None:
        file = await flexsc.open(tmp_path / "f", "wb")
        number, data = file.fileno(), Closes(file)
        with pytest.raises(ValueError if hasattr(bytes, "__buffer__") else TypeError):
            await file.write(data)
        await (data.closing or file.close())
        with pytest.raises(OSError):
            os.fstat(number)
        assert (tmp_path / "f").read_bytes() == b""

    run(main)
