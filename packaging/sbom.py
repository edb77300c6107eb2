# SPDX-License-Identifier: MIT
"""Writes a build's software bill of materials to stdout: CycloneDX 1.6, as JSON.

    sbom.py BUILD

The components are the Debian packages of headers and sources that the compiler read, as
ninja recorded them: a library that is linked has headers, too. Crates are those that
Cargo.lock names beside ours, and Python packages what pyproject.toml requires. Needs
Debian, and cyclonedx-python-lib[json-validation]. The document's time is
SOURCE_DATE_EPOCH, so the same build has the same document.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tomllib
import uuid
from collections.abc import Iterator
from datetime import datetime, timezone
from pathlib import Path

from cyclonedx.model.bom import Bom
from cyclonedx.model.component import Component, ComponentType
from cyclonedx.model.license import LicenseExpression
from cyclonedx.output.json import JsonV1Dot6
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator
from packageurl import PackageURL

ROOT = Path(__file__).resolve().parents[1]
BINDINGS = ROOT / "bindings"
LICENSES = "MIT AND GPL-2.0-only AND (GPL-2.0-only WITH Linux-syscall-note OR MIT)"


def lines(*command: str | Path) -> list[str]:
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    return done.stdout.splitlines()


def component(url: PackageURL) -> Component:
    return Component(
        name=url.name,
        version=url.version,
        type=ComponentType.LIBRARY,
        purl=url,
        bom_ref=str(url),
    )


def debian(build: Path) -> Iterator[Component]:
    read = {line.strip() for line in lines("ninja", "-C", build, "-t", "deps")}
    files = sorted(name for name in read if name.startswith("/usr/"))
    owners = {line.rpartition(": ")[0] for line in lines("dpkg-query", "-S", *files)}
    packages = sorted({name for owner in owners for name in owner.split(", ")})
    form = "${Package} ${Version} ${Architecture} ${source:Package}\\n"
    for line in sorted(lines("dpkg-query", "-W", "-f", form, *packages)):
        name, version, machine, source = line.split()
        more = {"arch": machine, "upstream": source}
        yield component(PackageURL("deb", "debian", name, version, more))


def cargo() -> Iterator[Component]:
    lock = tomllib.loads((BINDINGS / "rust" / "Cargo.lock").read_text())
    for package in lock["package"]:
        if "source" in package:
            name, version = package["name"], package["version"]
            yield component(PackageURL("cargo", None, name, version))


def python() -> Iterator[Component]:
    project = tomllib.loads((BINDINGS / "python" / "pyproject.toml").read_text())
    for name in project["project"].get("dependencies", []):
        yield component(PackageURL("pypi", None, name))


def bill(build: Path) -> str:
    version = (ROOT / "VERSION").read_text().strip()
    time = datetime.fromtimestamp(
        int(os.environ.get("SOURCE_DATE_EPOCH", "0")), timezone.utc
    )
    product = Component(
        name="flexsc",
        version=version,
        type=ComponentType.APPLICATION,
        licenses=[LicenseExpression(LICENSES)],
        bom_ref=f"flexsc-{version}",
    )
    parts = [*debian(build), *cargo(), *python()]
    bom = Bom(
        components=parts,
        serial_number=uuid.uuid5(uuid.NAMESPACE_URL, f"flexsc-{version}-{time}"),
    )
    bom.metadata.timestamp = time
    bom.metadata.component = product
    bom.register_dependency(product, parts)
    text = JsonV1Dot6(bom).output_as_string(indent=1)
    error = JsonStrictValidator(SchemaVersion.V1_6).validate_str(text)
    if error:
        raise SystemExit(f"sbom.py: the bill is not valid: {error}")
    return text


if __name__ == "__main__":
    print(bill(Path(sys.argv[1])))
