from __future__ import annotations

import subprocess
import sys

import pytest

from timeline import summarizers


def test_the_public_names_are_sorted_and_there() -> None:
    """Each name of ``__all__`` can be imported and stands in ``dir``; there are no others."""
    assert summarizers.__all__ == sorted(summarizers.__all__)
    assert all(getattr(summarizers, name).__name__ == name for name in summarizers.__all__)
    assert set(summarizers.__all__) <= set(dir(summarizers))
    with pytest.raises(AttributeError, match="no attribute 'WishfulSummarizer'"):
        summarizers.__getattr__("WishfulSummarizer")


def test_importing_the_package_loads_nothing() -> None:
    """The modules behind the names are imported on first use."""
    program = "import sys, summarizers; print(sorted(m for m in sys.modules if m.startswith('summarizers.')))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
