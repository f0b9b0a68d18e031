from __future__ import annotations

from pydantic import JsonValue

from glyphline.models.bundle import load_bundle
from glyphline.models.repository import ModelRepository, pretrained_root
from glyphline.training.card import write_card


def test_a_card_tells_the_way_from_the_first_run_on() -> None:
    manifest = load_bundle(ModelRepository([pretrained_root()]).resolve("digits", None)).manifest
    config = manifest.training["config"]
    assert isinstance(config, dict)
    training: dict[str, JsonValue] = {**manifest.training, "start_from": {"run": "early", "strips_seen": 1234}}
    assert "after the 1,234 of early." in write_card(manifest.model_copy(update={"training": training}))
    earlier: list[JsonValue] = [{"run": "early", "strips_seen": 1234}, {"run": "later", "strips_seen": 5}]
    training["start_from"] = earlier
    assert "after the 1,234 of early and the 5 of later." in write_card(
        manifest.model_copy(update={"training": training})
    )
    again = write_card(manifest.model_copy(update={"training": training})).partition("## How to make it again")[2]
    assert again.index("glyphline train early.toml") < again.index("glyphline train later.toml")
    assert again.index("--start-from runs/early") < again.index("--start-from runs/later")
    assert "fetch_fonts.py" in again
    own: dict[str, JsonValue] = {
        **training,
        "start_from": [],
        "config": {**config, "name": "mine", "sources": [], "validation": {}},
    }
    again = write_card(manifest.model_copy(update={"training": own})).partition("## How to make it again")[2]
    assert "glyphline train mine.toml --data-root DATA --output runs/mine\n" in again
    assert "--start-from" not in again
    assert "fetch_fonts.py" not in again, "no source draws with fonts"


def test_symbols_are_shown_whole_whatever_they_are() -> None:
    manifest = load_bundle(ModelRepository([pretrained_root()]).resolve("words", None)).manifest
    (line,) = [line for line in write_card(manifest).splitlines() if "Symbols: " in line]
    shown = line.partition("Symbols: ")[2]
    assert shown == f"`` {''.join(manifest.alphabet)} ``."
