"""`python -m timeline.cli` is `timeline`."""

from __future__ import annotations

import sys

from timeline.cli import main

sys.exit(main())
