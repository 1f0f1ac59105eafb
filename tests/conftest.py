"""Set-up that all tests share: how Hypothesis searches."""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings

# No deadline anywhere: a machine that does other work too is not a bug. In CI the same examples run every time, and
# none are kept; elsewhere each run looks at new ones.
settings.register_profile("here", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("ci", settings.get_profile("here"), derandomize=True, database=None, print_blob=True)
settings.load_profile("ci" if os.environ.get("CI") else "here")
