# SPDX-License-Identifier: MIT
"""The fixtures of tests/harness/fixtures.py, for all tests below this folder."""

from fixtures import engine, server, start, tree  # noqa: F401
