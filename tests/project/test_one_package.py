"""In a checkout `timeline.store` and `timeline.summarizers` are the folders beside it, by their own names too."""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING, NamedTuple

import pytest

from tests.project.environments import Environment, new_environment
from tests.project.sources import ROOT, modules

if TYPE_CHECKING:
    from pathlib import Path

FIRST = {
    "the packages inside timeline": "import timeline.store, timeline.summarizers",
    "a module inside timeline": "import timeline.store.codec, timeline.summarizers.text",
    "the folders": "import summarizers, store",
    "a module of the folders": "import store.codec, summarizers.text",
}
"""What is imported before everything else, which must not matter."""
EVERY_MODULE = """
import sys
from importlib import import_module

import store, summarizers, timeline

assert store is timeline.store and summarizers is timeline.summarizers
for number, name in enumerate({names}):
    names = [name, "timeline." + name]
    one, other = [import_module(each) for each in (names if number % 2 else names[::-1])]
    assert one is other, name
    assert one.__name__ == one.__spec__.name == "timeline." + name, (one.__name__, one.__spec__)
loaded = [name for name in sys.modules if name.partition(".")[0] in ("store", "summarizers")]
assert all(sys.modules[name] is sys.modules["timeline." + name] for name in loaded)
print(len(loaded))
"""
RELOADED = """
import store, timeline
from importlib import reload
finders = len(__import__("sys").meta_path)
assert reload(store) is store is timeline.store
assert reload(timeline).store is store
assert len(__import__("sys").meta_path) == finders
import store.codec
assert store.codec is timeline.store.codec
"""
MISSING = """
import store
try:
    import store.no_such_module
except ModuleNotFoundError as error:
    print(error.name)
"""
ASKED_TOO_EARLY = """
import timeline
from timeline.checkout import CheckoutFinder
print(CheckoutFinder.find_spec("store.test_shelves", ["."]))
"""
AN_APPLICATIONS_OWN = """
import store, summarizers.own
import timeline.store.codec
import store.own
print(store.__file__, store.own.OWNER, summarizers.own.OWNER, timeline.store.codec.__name__)
try:
    import store.codec
except ModuleNotFoundError as error:
    print(error.name)
"""


class Place(NamedTuple):
    """Where the folders are imported from, and the environment that does it."""

    environment: Environment
    folder: Path

    def run(self, program: str) -> str:
        """Run a program there and return what it prints."""
        return self.environment.run_program(program, self.folder)


@pytest.fixture(params=["checkout", "editable"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    """A checkout as the working directory and nothing installed, or an editable install used from elsewhere."""
    if request.param == "checkout":
        return Place(new_environment(tmp_path), ROOT)
    environment: Environment = request.getfixturevalue("editable")
    return Place(environment, environment.folder)


@pytest.mark.parametrize(
    ("place", "first"), [*product(["checkout"], FIRST), ("editable", "the folders")], indirect=["place"]
)
def test_every_module_is_one_object_under_both_of_its_names(place: Place, first: str) -> None:
    """Whichever name is imported first, a class is the same class, and says that it lives in `timeline`."""
    names = sorted(name for name in modules() if name.partition(".")[0] in {"store", "summarizers"})
    assert int(place.run(FIRST[first] + EVERY_MODULE.format(names=names))) >= len(names) > 40


def test_packages_are_reloaded_as_any(place: Place) -> None:
    """A reload gives the same object, and leaves one finder behind."""
    assert place.run(RELOADED) == ""


def test_a_module_that_is_not_there_is_missed_by_the_name_it_was_asked_for(place: Place) -> None:
    """A misspelt import fails as in any package."""
    assert place.run(MISSING) == "store.no_such_module\n"


def test_a_name_is_left_to_python_before_its_package_is_imported(place: Place) -> None:
    """Test runners ask each finder for the name of a file whose package nothing has imported yet."""
    assert place.run(ASKED_TOO_EARLY) == "None\n"


def test_an_applications_own_packages_keep_their_modules(editable: Environment, tmp_path: Path) -> None:
    """The finder leaves `store` to Python where it is somebody else's."""
    for name in ("store", "summarizers"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").touch()
        (tmp_path / name / "own.py").write_text('OWNER = "the application"\n')
    file = tmp_path / "store" / "__init__.py"
    assert editable.run_program(AN_APPLICATIONS_OWN, tmp_path).splitlines() == [
        f"{file} the application the application timeline.store.codec",
        "store.codec",
    ]
