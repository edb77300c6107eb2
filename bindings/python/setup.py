# SPDX-License-Identifier: MIT
"""Builds the extension; pkg-config finds libflexsc."""

from __future__ import annotations

import shlex
import subprocess

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

NAMES = (
    "call",
    "file",
    "future",
    "loop",
    "module",
    "names",
    "open",
    "status",
    "turn",
)


def pkg_config(what: str) -> list[str]:
    said = subprocess.run(
        ["pkg-config", what, "flexsc"], stdout=subprocess.PIPE, text=True, check=True
    )
    return shlex.split(said.stdout)


class Build(build_ext):
    """Look for the library only when something is compiled."""

    def build_extension(self, ext: Extension) -> None:
        ext.extra_compile_args += ["-std=gnu11", *pkg_config("--cflags")]
        version = self.distribution.get_version()
        ext.define_macros.append(("PACKAGE_VERSION", f'"{version}"'))
        ext.extra_link_args += pkg_config("--libs")
        super().build_extension(ext)


setup(
    cmdclass={"build_ext": Build},
    ext_modules=[
        Extension(
            "flexsc._flexsc",
            [f"src/{name}.c" for name in NAMES],
            depends=[f"src/{name}.h" for name in NAMES if name != "module"],
        )
    ],
)
