"""The tests that the threat model names exist."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[3]


def test_every_answer_is_shown_by_a_test_that_there_is() -> None:
    page = (ROOT / "docs" / "threat-model.md").read_text(encoding="utf-8")
    rows = [row for row in page.splitlines() if row.startswith("| ") and row.count(" | ") == 2]
    threats = [row for row in rows if not row.startswith("| threat |")]
    assert len(threats) > 25
    assert [row for row in threats if "`test_" not in row] == []
    named = set(re.findall(r"`(test_\w+)`", page))
    there = {
        name
        for path in (ROOT / "tests").rglob("test_*.py")
        for name in re.findall(r"^(?:async )?def (test_\w+)", path.read_text(encoding="utf-8"), re.MULTILINE)
    }
    assert named - there == set()
