# SPDX-License-Identifier: MIT
"""flexsc study webserver: one web server with several drivers, called models
(study/servers/webserver), to help choose a model for a service. It is Genevès' study,
with exception-less calls as an additional model.
"""

from __future__ import annotations

from .measuring import measure, parse, parse_several
from .offered import SECONDS
from .tables import show

__all__ = ["SECONDS", "measure", "parse", "parse_several", "show"]
