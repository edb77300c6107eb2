# SPDX-License-Identifier: MIT
"""One web server, driven in several ways (examples/webserver): which way to choose for
a service. Genevès' study, with exception-less calls as one more way.
"""

from __future__ import annotations

from .measuring import measure, parse
from .tables import show

__all__ = ["measure", "parse", "show"]
