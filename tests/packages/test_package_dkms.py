# SPDX-License-Identifier: MIT
"""The package flexsc-dkms: its contents, and its installation.

The test installs it in a separate root: an overlay over this one, in memory, in a
mount namespace, of which nothing remains.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
LIMIT = 900  # seconds for a hang: a busy machine took 200
VERSION = (ROOT / "VERSION").read_text().strip()
HEADERS = sorted(Path("/usr/src").glob("linux-headers-*-cloud-amd64"))
OPTIONS = (
    "PREEMPT_NOTIFIERS",
    "IRQ_WORK",
    "KPROBES",
    "KPROBES_ON_FTRACE",
    "KALLSYMS_ALL",
)
# In the form of uname -r.
BACKPORTED = ("6.12.9+bpo-arm64", "6.12.95+deb12-cloud-amd64")
TRIED = ("6.1.0-56-cloud-amd64", "6.1.0-9-amd64", *BACKPORTED, "7.3.4+deb13-amd64")
TRIED_ARM = BACKPORTED
OTHERS = ("6.1.0-1036-oem", "6.1.140", "6.12.1-1-pve", "6.12.0-124.el10.x86_64")
UNTRIED = (
    *OTHERS,
    *("6.0.0-6-amd64", "6.10.1+bpo-amd64", "6.13.0-1-amd64", "6.18.2+deb14-amd64"),
    *("6.12.95+deb12-rt-amd64", "7.0.0-1-amd64", "7.30.1+deb15-amd64"),
)

# $1: the package, $2: a kernel version, $3: commands to run in the root.
IN_A_ROOT = """
set -eu
mount -t tmpfs -o size=1g tmpfs "$PWD"
mkdir up work root
mount -t overlay -o lowerdir=/,upperdir=up,workdir=work overlay root
mount --rbind /proc root/proc
mount --rbind /dev root/dev
mount -t tmpfs tmpfs root/tmp
mount -t tmpfs tmpfs root/lib/modules
mkdir "root/lib/modules/$2"
ln -s "/usr/src/linux-headers-$2" "root/lib/modules/$2/build"
cp "$1" root/tmp/flexsc.deb
exec chroot root sh -eu -c "$3" sh "$2"
"""

INSTALLS = """
dpkg -i /tmp/flexsc.deb
echo "group: $(getent group flexsc)"
echo "status: $(dkms status -m flexsc)"
echo "module: $(find /lib/modules -name 'flexsc.ko*')"
echo "vermagic: $(modinfo -F vermagic "$(find /lib/modules -name 'flexsc.ko*')")"
dpkg -r flexsc-dkms
echo "left: $(find /lib/modules /var/lib/dkms -name '*flexsc*')"
"""

# dkms's status for kernels that don't exist: 77 if the module excludes them.
EXCLUDES = """
dpkg --unpack /tmp/flexsc.deb
dkms add -m flexsc -v {version}
try() {{
	status=0
	dkms build -m flexsc -v {version} -k "$2" -a "$3" \\
		--kernelsourcedir /tmp/kernel >/dev/null 2>&1 || status=$?
	echo "$1: $status"
}}
mkdir /tmp/kernel
config=/usr/src/linux-headers-$1/.config
for option in {options}; do
	grep -v "^CONFIG_$option=" "$config" >/tmp/kernel/.config
	try "$option" 6.1.0-9-amd64 x86_64
done
cp "$config" /tmp/kernel/.config
try machine 6.1.0-9-amd64 i686
for version in {kernels}; do
	try "$version" "$version" x86_64
	try "$version-arm" "$version" aarch64
done
echo CONFIG_PREEMPT_RT=y >>/tmp/kernel/.config
try PREEMPT_RT 6.1.0-9-amd64 x86_64
""".format(
    version=VERSION,
    options=" ".join(OPTIONS),
    kernels=" ".join((*TRIED, *UNTRIED)),
)


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if not shutil.which("dh_dkms"):
        pytest.skip("dh-dkms is missing: install dh-dkms")
    folder = tmp_path_factory.mktemp("package")
    made = subprocess.run(
        [ROOT / "scripts/package", folder, "-A"],
        env={**os.environ, "DEB_BUILD_PROFILES": "nodoc"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
        timeout=LIMIT,
    )
    assert made.returncode == 0, made.stdout
    (path,) = folder.glob(f"flexsc-dkms_{VERSION}*_all.deb")
    return path


def in_a_root(package: Path, tmp_path: Path, script: str) -> dict[str, str]:
    """Return the lines "name: value" of the script's output."""
    if os.getuid() != 0:
        pytest.skip("needs root, to make a root file system")
    if not shutil.which("dkms") or not HEADERS:
        pytest.skip("dkms or linux-headers-cloud-amd64 isn't installed")
    version = HEADERS[0].name.removeprefix("linux-headers-")
    unshare = ["unshare", "--mount", "--propagation", "private"]
    done = subprocess.run(
        [*unshare, "sh", "-c", IN_A_ROOT, "sh", package, version, script],
        cwd=tmp_path,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        env={**os.environ, "LC_ALL": "C"},
        text=True,
        check=False,
        timeout=LIMIT,
    )
    if done.returncode and re.search(r"^(mount|unshare): ", done.stdout, re.MULTILINE):
        pytest.skip(f"can't create a separate root here: {done.stdout.strip()}")
    assert done.returncode == 0, done.stdout
    found = dict(re.findall(r"^(\S+): ?(.*)$", done.stdout, re.MULTILINE))
    return {**found, "kernel": version}


def test_the_package_is_rooted_in_usr_and_belongs_to_root(package: Path) -> None:
    said = subprocess.run(
        ["dpkg-deb", "--contents", package], capture_output=True, text=True, check=True
    )
    lines = [line.split() for line in said.stdout.splitlines()]
    assert {line[1] for line in lines} == {"root/root"}
    assert {line[0] for line in lines} == {"drwxr-xr-x", "-rw-r--r--"}
    names = {line[-1] for line in lines}
    assert all(name == "./" or name.startswith("./usr/") for name in names)
    sources = f"./usr/src/flexsc-{VERSION}"
    for path in (ROOT / "kmod").rglob("*.[ch]"):
        built = path.name.endswith(".mod.c")
        assert (f"{sources}/{path.relative_to(ROOT)}" in names) != built
    assert f"{sources}/kmod/base/calls.def" in names
    assert f"{sources}/include/uapi/linux/flexsc.h" in names


def test_the_device_is_for_a_group(package: Path, tmp_path: Path) -> None:
    subprocess.run(["dpkg-deb", "--extract", package, tmp_path], check=True)
    rule = (tmp_path / "usr/lib/udev/rules.d/60-flexsc.rules").read_text()
    assert 'KERNEL=="flexsc"' in rule
    assert 'GROUP="flexsc"' in rule
    assert 'MODE="0660"' in rule
    group = (tmp_path / "usr/lib/sysusers.d/flexsc-dkms.conf").read_text()
    assert re.search(r"^g flexsc ", group, re.MULTILINE)


def test_installing_makes_the_group_and_builds_the_module(
    package: Path, tmp_path: Path
) -> None:
    found = in_a_root(package, tmp_path, INSTALLS)
    kernel = found["kernel"]
    assert found["group"].startswith("flexsc:")
    assert found["status"].endswith(": installed")
    assert found["module"].startswith(f"/lib/modules/{kernel}/updates/dkms/flexsc.ko")
    assert found["vermagic"].startswith(f"{kernel} ")
    assert found["left"] == ""


def test_kernels_that_the_module_is_not_for_are_excluded(
    package: Path, tmp_path: Path
) -> None:
    found = in_a_root(package, tmp_path, EXCLUDES)
    for name in (*OPTIONS, "PREEMPT_RT", "machine", *UNTRIED):
        assert found[name] == "77", name
    for name in (*TRIED, *UNTRIED):
        assert (found[f"{name}-arm"] == "77") == (name not in TRIED_ARM), name
    # The build fails without headers, but the kernel isn't excluded.
    for name in TRIED:
        assert found[name] not in ("0", "77"), name


def test_dkms_and_the_documents_name_the_same_kernels() -> None:
    conf = (ROOT / "debian/flexsc-dkms.dkms").read_text()
    series = re.search(r'KERNEL="\^\(([^)]*)\)', conf)
    assert series
    named = series[1].replace("\\", "").split("|")
    words = f"{', '.join(named[:-1])} and {named[-1]}"
    for path in ("docs/how-to/install-the-module.md", "CHANGELOG.md"):
        assert words in " ".join((ROOT / path).read_text().split()), path
    assert f"(Linux {', '.join(named)})" in (ROOT / "debian/control").read_text()


def test_obsolete_dkms_settings_are_absent(package: Path) -> None:
    assert not re.search(
        r"^CLEAN=", (ROOT / "debian/flexsc-dkms.dkms").read_text(), re.MULTILINE
    )
    said = subprocess.run(
        ["dpkg-deb", "--field", package, "Maintainer"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert "localhost" not in said.stdout
