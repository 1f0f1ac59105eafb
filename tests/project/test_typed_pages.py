"""What the documents and the docstrings show passes a strict type checker, as a user's own program would."""

from __future__ import annotations

import subprocess
import sys
from textwrap import indent
from typing import TYPE_CHECKING

from tests.project.pages import code_blocks, pages
from tests.project.sources import ROOT
from tests.project.test_examples import examples

if TYPE_CHECKING:
    from pathlib import Path

    from tests.project.environments import Environment

SETTINGS = """
[mypy]
strict = True
# A page's blocks are one program, which uses a name again; and functions are short there, without annotations.
allow_redefinition = True
allow_untyped_defs = True
allow_untyped_calls = True
# Any type will do for what others wrote: to read all of it takes a minute. The tests of the integrations check that.
follow_imports = skip
disallow_subclassing_any = False
disallow_untyped_decorators = False

[mypy-timeline.*,pydantic.*,pydantic_core.*,annotated_types.*,typing_extensions.*,dict_store]
follow_imports = normal

[mypy-tests.*,claude_agent_sdk.*]
ignore_missing_imports = True
"""
SAMPLE = """
# A page

```python
from timeline import Timeline, open_store

store = await open_store("memory://")
```

<!-- no-run: it needs a key -->
```python
timeline = await Timeline.open(store, "cards")
timeline.window.summary.block
```
"""


def as_module(text: str) -> str:
    """Return the Python of a page as a module, each line at its number: the body of a coroutine, so that it may await.

    Blocks that do not run are part of it. It is empty where nothing is about the library.
    """
    blocks = [block for block in code_blocks(text) if block.language == "python"]
    if not any("timeline" in block.text for block in blocks):
        return ""
    lines = [""] * (text.count("\n") + 1)
    lines[blocks[0].line - 2] = "async def page() -> None:"  # in place of the fence
    for block in blocks:
        code = indent(block.text, "    ").splitlines()
        lines[block.line - 1 : block.line - 1 + len(code)] = code
    return "\n".join(lines)


def complaints(environment: Environment, folder: Path, texts: dict[str, str]) -> list[str]:
    """Return what mypy finds wrong with texts, by their names, in an environment with the library."""
    shown = {name.replace("/", "_").replace(".", "_"): name for name in texts}
    for module, name in shown.items():
        text = texts[name]
        (folder / f"{module}.py").write_text(text if name.endswith(".py") else as_module(text), encoding="utf-8")
    (folder / "dict_store.py").write_bytes((ROOT / "docs" / "stores" / "dict_store.py").read_bytes())
    (folder / "mypy.ini").write_text(SETTINGS, encoding="utf-8")
    options = ("--no-error-summary", "--hide-error-context", "--cache-dir=", "--python-executable", environment.python)
    modules = [f"{module}.py" for module in shown]
    done = subprocess.run(
        [sys.executable, "-m", "mypy", *options, *modules], cwd=folder, capture_output=True, text=True, check=False
    )
    assert done.stderr == ""
    found = [line.partition(".py:") for line in done.stdout.splitlines()]
    return [f"{shown.get(module, module)}:{complaint}" for module, _, complaint in found]


def test_what_documents_and_docstrings_show_is_well_typed(installed: Environment, tmp_path: Path) -> None:
    """A reader who copies it into a program that is checked strictly met dozens of complaints."""
    files = [*pages(), *sorted((ROOT / "docs").rglob("*.py"))]
    texts = {file.relative_to(ROOT).as_posix(): file.read_text(encoding="utf-8") for file in files}
    texts |= {f"docstring of {example}": f"\n{example.docstring}" for example in examples()}
    found = complaints(installed, tmp_path, texts)
    assert not found, "\n".join(found)


def test_a_page_that_is_badly_typed_is_found_at_its_line(installed: Environment, tmp_path: Path) -> None:
    """Blocks share their names, and those that do not run are read, too."""
    sound = SAMPLE.replace(".block", "")
    [found] = complaints(installed, tmp_path, {"docs/sample.md": SAMPLE, "docs/sound.md": sound})
    assert found.startswith('docs/sample.md:13: error: Item "None" of "Item[Block] | None" has no attribute "block"')
