# SPDX-License-Identifier: MIT
"""flexsc study webserver: one web server, driven by several models (study/servers/webserver), so
that a service can choose one. It is Genevès' study with exception-less calls as one
more model.
"""

from __future__ import annotations

from .measuring import measure, parse, parse_several
from .offered import SECONDS
from .tables import show

__all__ = ["SECONDS", "measure", "parse", "parse_several", "show"]
