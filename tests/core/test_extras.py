from __future__ import annotations

from importlib import import_module

import pytest

from timeline.errors import MissingExtra, needs


def test_a_missing_package_is_told_by_the_extra_that_brings_it() -> None:
    """The cure is a line to type; the cause stays for whoever debugs."""
    with (
        pytest.raises(MissingExtra, match=r"pip install 'timeline-engine\[openai-agents\]'") as raised,
        needs("openai-agents"),
    ):
        import_module("no_such_package")
    assert isinstance(raised.value.__cause__, ModuleNotFoundError)


def test_an_extra_may_have_another_name_than_its_package() -> None:
    """google-genai comes with the extra google."""
    with (
        pytest.raises(MissingExtra, match=r"google-genai is not installed.*\[google\]"),
        needs("google-genai", "google"),
    ):
        import_module("no_such_package")


def test_other_errors_of_an_import_pass() -> None:
    """A package that is there but broken is not called missing."""
    with pytest.raises(ImportError, match="cannot import name 'nothing'") as raised, needs("json"):
        exec("from json import nothing")  # noqa: S102 - a name that no type checker finds
    assert not isinstance(raised.value, MissingExtra)
