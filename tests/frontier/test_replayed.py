from __future__ import annotations

from typing import TYPE_CHECKING

from tests.frontier.replayed import hash_of

if TYPE_CHECKING:
    from pathlib import Path


def test_replays_of_other_code_have_a_folder_of_their_own(tmp_path: Path) -> None:
    """A byte more in a source, or in packaged data, is other code; what Python compiled of it is not."""
    package = tmp_path / "package"
    (package / "__pycache__").mkdir(parents=True)
    compiled, module, data = (package / name for name in ("__pycache__/module.pyc", "module.py", "data.toml"))
    found = [hash_of([package])]
    for file in (compiled, module, data):
        file.write_text("x = 1\n", encoding="utf-8")
        found.append(hash_of([package]))
    assert found[0] == found[1]
    assert len({*found}) == 3
