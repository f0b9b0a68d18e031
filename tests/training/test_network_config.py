from __future__ import annotations

import pytest
from pydantic import ValidationError

from glyphline.training.config import NetworkConfig


@pytest.mark.parametrize(
    ("settings", "advice"),
    [
        ({"heads": []}, "at least one head"),
        ({"heads": ["ctc", "ctc"]}, "each once"),
        ({"heads": ["attention", "flatten"], "canvas_width": 64}, "keep one of them"),
        ({"heads": ["flatten"]}, "set network.canvas_width"),
        ({"heads": ["flatten"], "canvas_width": 65}, "multiple of 4"),
        ({"heads": ["ctc"], "canvas_width": 64}, "leave it out"),
        ({"heads": ["attention"], "image_every_step": True}, "leave it out"),
        ({"heads": ["pooled-state"], "encoder_layers": 0}, "set encoder_layers"),
        ({"encoder": "resnet18", "weigh_rows": True}, "not of resnet18"),
        ({"column_maximum": False}, "nothing collapses the height"),
        ({"encoder": "vgg"}, "resnet18"),
        ({"heads": ["words"]}, "image-first"),
    ],
)
def test_what_does_not_fit_is_refused_with_what_to_do(settings: dict[str, object], advice: str) -> None:
    with pytest.raises(ValidationError, match=advice):
        NetworkConfig.model_validate(settings)


def test_the_step_wise_head_is_found_beside_ctc() -> None:
    assert NetworkConfig().decoder_head == "attention"
    assert NetworkConfig(heads=("ctc",)).decoder_head is None
    assert NetworkConfig(heads=("image-first", "ctc")).decoder_head == "image-first"


def test_an_attention_head_has_by_default_nothing_that_tells_how_long_a_strip_is() -> None:
    for config in (NetworkConfig(), NetworkConfig(heads=("attention",))):
        assert (config.encoder_layers, config.carries_state, config.attention_reach) == (0, False, 16)
    assert NetworkConfig(heads=("ctc",)).encoder_layers == 2
    assert NetworkConfig(heads=("attention",), encoder_layers=1).encoder_layers == 1
