from __future__ import annotations

import re
from pathlib import Path

import pytest

import glyphline.training
from glyphline.training.augment import Wear
from glyphline.training.config import WearConfig, read_config, read_evaluation_sets
from glyphline.training.errors import TrainingError

CONFIGS = Path(next(iter(glyphline.training.__path__))) / "configs"


def test_shipped_configurations_are_valid() -> None:
    config = read_config(CONFIGS / "digits.toml")
    assert config.make_alphabet().size == len(config.alphabet) + 1
    assert {"mnist-1-8", "mnist-9-16", "registers", "meters", "blank"} <= set(
        read_evaluation_sets(CONFIGS / "evaluation.toml")
    )


def test_what_is_tested_is_not_trained_on() -> None:
    config = read_config(CONFIGS / "digits.toml").model_dump()
    sets = {name: settings.model_dump() for name, settings in read_evaluation_sets(CONFIGS / "evaluation.toml").items()}
    assert sets["mnist-1-8"]["characters"]["part"] == "t10k"
    assert all(s["characters"]["part"] == "train" for s in config["sources"] if "characters" in s)
    for kind, name in (("real", "registers"), ("readings", "meters")):
        sources = [source for source in config["sources"] if source["kind"] == kind]
        left_out = " ".join(
            source.get("without", "") or source.get("characters", {}).get("without", "") for source in sources
        )
        held_out = sets[name]["only"].removesuffix("-").removesuffix("_").split("(")[1].removesuffix(")").split("|")
        assert all(part in left_out for part in held_out)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("name = ", "not TOML"),
        ("name = 'x'", "sources: Field required"),
        ("name = 'x'\nalphabet = '01'\ncolour = 3", "colour: Extra inputs"),
        ("[[sources]]\nkind = 'magic'", "sources.0"),
    ],
)
def test_a_bad_configuration_is_named_with_its_keys(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "bad.toml"
    path.write_text(text)
    with pytest.raises(TrainingError, match=message) as error:
        read_config(path)
    assert str(path) in str(error.value)


def test_a_missing_configuration_is_named(tmp_path: Path) -> None:
    with pytest.raises(TrainingError, match="does not exist"):
        read_config(tmp_path / "none.toml")


def test_wear_keeps_what_is_not_given() -> None:
    assert WearConfig(lines=0.9).apply(Wear(slant=0.1)) == Wear(slant=0.1, lines=0.9)


def test_a_configuration_is_utf_8_with_or_without_a_byte_order_mark(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_bytes(b"name = '\xe9'")
    with pytest.raises(TrainingError, match=r"not UTF-8: .* at byte 8"):
        read_config(path)
    path.write_text((CONFIGS / "digits.toml").read_text(encoding="utf-8"), encoding="utf-8-sig")
    assert read_config(path).name == "digits"


def test_the_configurations_of_the_documents_are_valid(repository_root: Path, tmp_path: Path) -> None:
    text = (repository_root / "docs" / "training.md").read_text(encoding="utf-8")
    blocks = re.findall(r"^```toml\n(name = .*?)^```", text, re.M | re.S)  # others are parts of one
    assert len(blocks) >= 2
    for block in blocks:
        (tmp_path / "mine.toml").write_text(block, encoding="utf-8")
        read_config(tmp_path / "mine.toml")
