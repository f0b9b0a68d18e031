"""What goes into a model card holds elsewhere, too: commands, names of sets, and what is said of a licence."""

from __future__ import annotations

import shlex
import shutil
import tomllib
from pathlib import Path

from glyphline.models.bundle import load_bundle
from glyphline.models.decoding.options import DecodingOptions
from glyphline.models.recognizer import load_recognizer
from glyphline.models.repository import pretrained_root
from glyphline.training.card import NOT_STATED, write_card
from glyphline.training.config import TrainingConfig
from glyphline.training.evaluate import EVALUATION_SETS, evaluate_command, portable_command, portable_name


def test_names_of_sets_tell_nothing_of_this_machine(tmp_path: Path) -> None:
    assert portable_name("meters") == "meters"
    assert portable_name("data/strips") == "data/strips"
    assert portable_name(str(tmp_path / "my strips")) == portable_name("../my strips") == "DATA/my strips"


def test_a_recorded_command_is_one_for_other_machines(strips_folder: Path, tmp_path: Path) -> None:
    source = sorted((pretrained_root() / "digits-ctc").iterdir())[-1]
    copy = tmp_path / "elsewhere"
    shutil.copytree(source, copy)
    options = DecodingOptions(decoder="beam", beam_width=4)
    evaluate_command([str(copy)], [str(strips_folder)], Path("data"), options, 3, record=True)
    [row] = [row for row in load_bundle(copy).manifest.evaluation if row.data_set == f"DATA/{strips_folder.name}"]
    place = f"MODELS/digits-ctc/{source.name}"
    assert row.command == (
        f"glyphline evaluate DATA/{strips_folder.name} --model {place} --decoder beam --beam-width 4 --limit 3"
    )
    assert str(tmp_path) not in (copy / "model_card.md").read_text()
    shipped = load_recognizer("digits-ctc")
    command = portable_command([shipped], ["meters", "/home/me/a b.toml:held_out"], DecodingOptions())
    assert shlex.split(command) == [
        *("glyphline", "evaluate", "meters", "a b.toml:held_out", "--model", "digits-ctc", "--data-root", "DATA")
    ]


def test_a_licence_is_stated_or_not() -> None:
    assert TrainingConfig.model_fields["licence"].default == ""
    manifest = load_bundle(sorted((pretrained_root() / "digits").iterdir())[-1]).manifest
    assert "Licence of the weights: Apache-2.0." in write_card(manifest)
    assert f"Licence of the weights: {NOT_STATED}." in write_card(manifest.model_copy(update={"licence": ""}))


def test_the_shipped_configurations_state_theirs() -> None:
    for path in EVALUATION_SETS.parent.glob("digits*.toml"):
        assert tomllib.loads(path.read_text(encoding="utf-8"))["licence"] == "Apache-2.0", path
