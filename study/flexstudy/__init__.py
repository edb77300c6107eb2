# SPDX-License-Identifier: MIT
"""The benches of the papers' figures, and the report that shows both."""
