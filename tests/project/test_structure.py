from __future__ import annotations

import ast
from collections import defaultdict
from graphlib import CycleError, TopologicalSorter

import pytest

from tests.project.sources import PACKAGES, Import, imports, modules, tree

# The design's picture, a row for each arrow: what stands left may import what stands right, and itself.
#
#   events ──fold──▶ Window ──planning──▶ decisions ──append──▶ events      the shell, with everything below it
#                      └────projection──▶ RenderedContext ──wire──▶ messages
VOCABULARY = (
    "attempt_events blocks digest encoding errors events extras frozen lifetimes notice_events paths ports queries "
    "refusals stage_events"
)
BELOW_THE_SHELL = "vocabulary tokens policy fold wire importers planning projection re-exports"
PICTURE = {
    "vocabulary": "",
    "tokens": "vocabulary",
    "policy": "vocabulary",
    "fold": "vocabulary",
    "wire": "vocabulary",
    "importers": "vocabulary wire",
    "planning": "vocabulary fold policy",
    "projection": "vocabulary fold policy wire planning.budget planning.costs",
    "shell": BELOW_THE_SHELL,
    "portable": "vocabulary fold importers shell",
    "integrations": f"{BELOW_THE_SHELL} shell",
    "lab": f"{BELOW_THE_SHELL} shell",
    "cli": f"{BELOW_THE_SHELL} shell portable integrations lab store summarizers",
    "re-exports": "vocabulary policy projection shell store summarizers checkout",
    "checkout": "",
}
"""``shell`` is every other module right under `timeline`; ``re-exports`` is `timeline` itself, which imports lazily."""

BESIDE_THE_CORE = {
    "store": "blocks digest encoding errors events frozen paths ports queries",
    "summarizers": "blocks digest errors events extras frozen paths policy.limits ports refusals tokens wire.usage",
}
"""What of `timeline` the two other packages may import."""

PURE = ("fold", "planning", "policy", "projection", "wire")
IMPURE = {"anyio", "asyncio", "datetime", "io", "logging", "os", "pathlib", "random", "secrets", "socket", "sqlite3"}
IMPURE |= {"subprocess", "tempfile", "threading", "time", "uuid"}
READING = {"timeline.policy.files", "timeline.policy.limits"}
"""Modules of a pure part that read files while a policy is made; no other pure part imports them, nor the presets."""


def part_of(module: str) -> str:
    """Return the row of the picture that a module belongs to."""
    package, _, rest = module.partition(".")
    if package != "timeline":
        return package
    if not rest:
        return "re-exports"
    first, _, inner = rest.partition(".")
    if first in VOCABULARY.split():
        return "vocabulary"
    is_folder = bool(inner) or modules()[module].name == "__init__.py"
    return first if is_folder else "shell"


def own(found: Import) -> bool:
    """Say whether an import is one of the project's own modules."""
    return found.target.partition(".")[0] in PACKAGES


def lines(wrong: list[Import]) -> str:
    """Say where imports stand."""
    return "\n".join(dict.fromkeys(f"{found.where}: {found.importer} imports {found.target}" for found in wrong))


def strings(package: str) -> list[str]:
    """Return the texts in a package that look like the names of modules inside it."""
    nodes = (node for module in modules() if part_of(module) == package for node in ast.walk(tree(module)))
    texts = (node.value for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str))
    return sorted({text for text in texts if text.startswith(f"{package}.")})


def test_every_part_of_the_core_has_its_row_in_the_picture() -> None:
    """A new folder under `timeline` is placed in the picture before anything imports it."""
    assert {part_of(module) for module in modules()} - {"store", "summarizers"} <= PICTURE.keys()


@pytest.mark.parametrize("part", PICTURE)
def test_a_part_of_the_core_imports_only_what_the_picture_says(part: str) -> None:
    """Dependencies of the core follow the arrows, those of type annotations too."""
    allowed = {part, *PICTURE[part].split()}
    of_part = [found for found in imports() if own(found) and part_of(found.importer) == part]
    wrong = [
        f for f in of_part if part_of(f.target) not in allowed and f.target.removeprefix("timeline.") not in allowed
    ]
    assert not wrong, lines(wrong)


def test_only_the_command_line_and_the_lazy_re_exports_import_store_and_summarizers() -> None:
    """The core knows stores and summarizers by their protocols alone."""
    beside = [
        f for f in imports() if f.target.partition(".")[0] in BESIDE_THE_CORE and f.importer.startswith("timeline")
    ]
    wrong = [f for f in beside if part_of(f.importer) not in {"cli", "re-exports"}]
    assert not wrong, lines(wrong)


@pytest.mark.parametrize("package", BESIDE_THE_CORE)
def test_a_package_beside_the_core_imports_only_its_vocabulary(package: str) -> None:
    """`store` and `summarizers` use the core's words, never its engine, and never each other."""
    allowed = set(BESIDE_THE_CORE[package].split())
    foreign = [f for f in imports() if own(f) and part_of(f.importer) == package and part_of(f.target) != package]
    inner = [(f, f.target.removeprefix("timeline.")) for f in foreign]
    wrong = [f for f, name in inner if name not in allowed and name.partition(".")[0] not in allowed]
    assert not wrong, lines(wrong)


@pytest.mark.parametrize("package", BESIDE_THE_CORE)
def test_a_package_beside_the_core_imports_itself_by_relative_imports(package: str) -> None:
    """A package is found where it is, whichever of its names it is imported by, and never an application's `store`."""
    inner = [f for f in imports() if f.importer.partition(".")[0] == package == f.target.partition(".")[0]]
    wrong = [found for found in inner if not found.relative]
    assert not wrong, lines(wrong)
    assert [text for text in strings(package) if text in modules()] == [], "a module that is imported by its whole name"


def test_no_module_imports_itself_by_a_detour() -> None:
    """The imports that are carried out form no cycle, those inside functions included."""
    graph: dict[str, set[str]] = defaultdict(set)
    for found in imports():
        if own(found) and found.runs and found.target != found.importer:
            graph[found.importer].add(found.target)
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        pytest.fail(" → ".join(error.args[1]))


@pytest.mark.parametrize("part", PURE)
def test_a_pure_part_imports_no_clock_randomness_or_input_and_output(part: str) -> None:
    """What is folded, planned and projected depends on arguments alone (the design's fourth invariant)."""
    of_part = [f for f in imports() if part_of(f.importer) == part and f.runs and f.importer not in READING]
    wrong = [found for found in of_part if found.target.partition(".")[0] in IMPURE]
    assert not wrong, lines(wrong)


def test_planning_and_projection_know_policies_by_their_model_alone() -> None:
    """What reads files to make a policy is done before anything is planned."""
    making = READING | {"timeline.policies", "timeline.policy.presets"}
    wrong = [f for f in imports() if part_of(f.importer) in {*PURE} - {"policy"} and f.target in making]
    assert not wrong, lines(wrong)


def test_importing_the_core_names_imports_nothing_else_of_it() -> None:
    """`import timeline` costs next to nothing: each public name is imported when it is first asked for."""
    at_once = [found for found in imports() if found.importer == "timeline" and own(found) and found.runs]
    at_once = [found for found in at_once if part_of(found.target) != "checkout"]
    assert not at_once, lines(at_once)
