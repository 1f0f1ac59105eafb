from __future__ import annotations

import ast
import re
from collections import defaultdict
from graphlib import CycleError, TopologicalSorter

import pytest

from tests.project.pages import table_rows
from tests.project.sources import PACKAGES, ROOT, Import, imports, modules, re_exported, tree

# The design's picture, a row for each place of its map: what stands left may import what stands right, and itself.
#
#   events ──fold──▶ Window ──planning──▶ decisions ──append──▶ events      engine, agent and Timeline, with all below
#                      └────projection──▶ RenderedContext ──wire──▶ messages
VOCABULARY = "blocks databases digest display errors events frozen home ports queries usage"
PURE_PARTS = "vocabulary content facts policy fold wire planning projection"
ENGINE = f"{PURE_PARTS} tokens checks log lifecycle"
FACE = "re-exports"
PICTURE = {
    "vocabulary": "",
    "content": "vocabulary",
    "facts": "vocabulary content",
    "tokens": "vocabulary",
    "policy": "vocabulary",
    "fold": "vocabulary content",
    "wire": "vocabulary content",
    "importers": "vocabulary content wire",
    "planning": "vocabulary content facts fold policy",
    "policies": "policy planning.outline",
    "projection": "vocabulary content fold policy wire planning.account planning.costs",
    "checks": "vocabulary policy",
    "log": "vocabulary facts fold",
    "retention": "vocabulary fold checks log",
    "lifecycle": "vocabulary fold policy planning.account projection.context checks log",
    "audit": f"{PURE_PARTS} tokens log",
    "answers": "vocabulary fold projection log audit",
    "forgetting": f"{PURE_PARTS} tokens checks log retention audit re-exports",
    "engine": f"{ENGINE} re-exports",
    "agent": "vocabulary content facts importers fold wire planning projection checks log engine.conversation",
    "view": "vocabulary facts fold policy projection checks log engine",
    "timeline": f"{PURE_PARTS} checks log retention lifecycle audit forgetting engine agent view",
    "message_lists": f"{PURE_PARTS} checks log engine agent",
    "sync": "vocabulary retention fold policy wire.request projection agent view timeline message_lists re-exports",
    "portable": "vocabulary facts importers fold planning checks log audit timeline",
    "integrations": f"{ENGINE} importers agent timeline sync portable re-exports",
    "lab": f"{ENGINE} agent.recall importers engine timeline portable re-exports",
    "inspector": (
        f"{ENGINE} audit answers forgetting.credentials engine timeline sync portable integrations.http_bounds "
        "integrations.http_connections integrations.loopback integrations.bearer integrations.reopening lab re-exports"
    ),
    "cli": (
        f"{ENGINE} retention importers audit answers forgetting timeline portable integrations lab inspector "
        "store summarizers re-exports"
    ),
    "checkout": "",
    "re-exports": (
        "vocabulary policy policies log.collector projection timeline message_lists store summarizers checkout"
    ),
}
"""What imports what, from the ground up: folders right under `timeline`, and modules in the same place.

``re-exports`` is `timeline` itself, which imports lazily.
"""
BESIDE_THE_CORE = {
    "store": (
        "blocks content databases digest errors events facts frozen home log.collector log.off_loop log.uncancelled "
        "ports queries"
    ),
    "summarizers": (
        "blocks digest errors events facts.plans facts.tool_use frozen log.apart policy.limits ports tokens usage "
        "wire.refusals wire.usage"
    ),
}
"""What of `timeline` the two other packages may import."""

PURE = ("content", "facts", "fold", "planning", "policy", "projection", "wire")
IMPURE = {"anyio", "asyncio", "datetime", "io", "logging", "os", "pathlib", "random", "secrets", "socket", "sqlite3"}
IMPURE |= {"subprocess", "tempfile", "threading", "time", "uuid"}
IN_MEMORY = {("io", "BytesIO")}
"""Names of such modules that touch nothing outside."""
READING = {"timeline.policy.files", "timeline.policy.library", "timeline.policy.limits"}
"""Modules of a pure part that read files while a policy is made; no other pure part imports them, nor the presets."""


def part_of(module: str) -> str:
    """Return the row of the picture that a module belongs to."""
    package, _, rest = module.partition(".")
    if package != "timeline":
        return package
    if not rest:
        return "re-exports"
    first = rest.partition(".")[0]
    return "vocabulary" if first in VOCABULARY.split() else first


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


def test_the_root_holds_what_applications_import_and_nothing_else() -> None:
    """What is not imported from outside has its folder: fourteen modules are as many as one can look over."""
    flat = sorted(file.name for file in modules().values() if file.parent == ROOT / "timeline")
    assert len(flat) <= 14, flat


def test_each_row_of_the_picture_rests_on_rows_above_it() -> None:
    """The rows are an order: read from the first one, nothing is used that was not there before."""
    rows = list(PICTURE)
    used = {part: {word.partition(".")[0] for word in PICTURE[part].split()} & set(rows) for part in rows}
    wrong = [(part, u) for part in rows for u in used[part] - {FACE} if rows.index(u) > rows.index(part)]
    assert wrong == []


def test_the_map_of_the_design_has_the_places_and_the_order_of_the_picture() -> None:
    """Each folder, and each module right under `timeline`, is on one row of the map, which grows from the ground up."""
    design = (ROOT / "docs" / "design.md").read_text(encoding="utf-8")
    section = design.partition("## Layout")[2].partition("\n## ")[0]
    rows = [re.findall(r"`([^`]+)`", row.split("|")[1]) for row in table_rows(section)]
    named = [place for row in rows for place in row]
    top = {file.relative_to(ROOT / "timeline").parts for name, file in modules().items() if name.startswith("timeline")}
    there = {f"timeline/{parts[0]}" + ("/" if len(parts) > 1 else "") for parts in top} | {"store/", "summarizers/"}
    assert sorted(named) == sorted(there)
    of_part = [
        [part_of(place.removesuffix("/").removesuffix(".py").replace("/", ".")) for place in row] for row in rows
    ]
    parts = [FACE if part == "__init__" else part for row in of_part for part in row]
    assert [part for part in dict.fromkeys(parts) if part in PICTURE] == list(PICTURE)


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
    """Imports form no cycle, those inside functions and those for type checkers included."""
    graph: dict[str, set[str]] = defaultdict(set)
    for found in imports():
        needed = re_exported().get(found.name, found.target) if found.target == "timeline" else found.target
        if own(found) and needed != found.importer:
            graph[found.importer].add(needed)
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        pytest.fail(" → ".join(error.args[1]))


@pytest.mark.parametrize("part", PURE)
def test_a_pure_part_imports_no_clock_randomness_or_input_and_output(part: str) -> None:
    """What is folded, planned and projected depends on arguments alone (the design's fourth invariant)."""
    of_part = [f for f in imports() if part_of(f.importer) == part and f.runs and f.importer not in READING]
    outside = [found for found in of_part if (found.target, found.name) not in IN_MEMORY]
    wrong = [found for found in outside if found.target.partition(".")[0] in IMPURE]
    assert not wrong, lines(wrong)


def test_planning_and_projection_know_policies_by_their_model_alone() -> None:
    """What reads files to make a policy is done before anything is planned."""
    making = READING | {"timeline.policies", "timeline.policy.presets"}
    wrong = [f for f in imports() if part_of(f.importer) in {*PURE} - {"policy"} and f.target in making]
    assert not wrong, lines(wrong)


def test_importing_the_core_names_imports_nothing_else_of_it() -> None:
    """`import timeline` costs next to nothing: each public name is imported when it is first asked for."""
    found_at = (found for found in imports() if found.importer == "timeline" and own(found) and found.runs)
    late = "timeline.log.collector"  # it comes with the first name
    at_once = [found for found in found_at if part_of(found.target) != "checkout" and found.target != late]
    assert not at_once, lines(at_once)
