"""The page, made with gradio: its fields, and what is done when one changes."""

from __future__ import annotations

import os
from importlib.resources import files
from typing import Any

# Before gradio is loaded: neither it nor what it brings along tells anybody that it is used.
os.environ["GRADIO_ANALYTICS_ENABLED"] = "False"
os.environ["HF_HUB_DISABLE_TELEMETRY"] = "1"

import gradio

from glyphline.models.decoding import MAX_BEAM_WIDTH
from glyphline.models.errors import GlyphlineError
from glyphline.models.image import ImageLimits
from glyphline.service.playground.choices import BEAM, DECODERS, GREEDY, Choices, Model
from glyphline.service.playground.examples import examples
from glyphline.service.playground.readers import Reader
from glyphline.service.playground.reading import Problem, explain, picture_of, read_picture
from glyphline.service.playground.view import WAITING, render

__all__ = ["TITLE", "build_page", "resource"]

TITLE = "Glyphline playground"
_MOST_ALTERNATIVES = 10
_USUAL = Choices()
_USUAL_LIMITS = ImageLimits()


def build_page(reader: Reader, chosen: Model | None = None, limits: ImageLimits = _USUAL_LIMITS) -> gradio.Blocks:
    """Builds the page.

    Args:
        reader: Who reads.
        chosen: The model that is chosen at first; None for the reader's default.
        limits: How large a picture may be.

    Raises:
        GlyphlineError: If the reader's models cannot be had.
    """
    models = {model.label: model for model in reader.models()}
    with gradio.Blocks(title=TITLE, analytics_enabled=False) as page:
        gradio.HTML(f"<h1>{TITLE}</h1><p>Pictures are read {reader.place}.</p>", elem_id="heading", padding=False)
        with gradio.Row(elem_id="parts"):
            with gradio.Column(elem_id="given", min_width=300):
                picture = gradio.HTML(
                    {"kind": "drawing", "address": "", "number": 0},
                    html_template=resource("picture.html"),
                    js_on_load=resource("picture.js"),
                    apply_default_css=False,
                    padding=False,
                    elem_id="picture",
                    examples=[{"name": each.name, "address": each.address} for each in examples()],
                    most_bytes=limits.max_bytes,
                )
                button = gradio.Button("Read", variant="primary")
            with gradio.Column(elem_id="choices", min_width=300):
                with gradio.Row():
                    first = chosen.label if chosen else next(iter(models))
                    model = gradio.Dropdown(list(models), value=first, label="Model")
                    allowed = gradio.Textbox(label="Allowed characters", placeholder="all that the model can write")
                decoder = gradio.Radio(list(DECODERS), value=_USUAL.decoder, label="Decoder")
                with gradio.Row():
                    alternatives = gradio.Slider(
                        1, _MOST_ALTERNATIVES, _USUAL.alternatives, step=1, label="Alternatives"
                    )
                    width = gradio.Slider(
                        1, MAX_BEAM_WIDTH, _USUAL.beam_width, step=1, label="Beam width", visible=False
                    )
            with gradio.Column(elem_id="answer", min_width=300):
                result = gradio.HTML(WAITING, elem_id="result", apply_default_css=False, padding=False)

        fields = [picture, model, decoder, width, alternatives, allowed]

        def read(asked: bool, value: object, label: str, *choices: Any) -> str:  # noqa: ANN401  (what fields hold)
            return _read(reader, models[label], limits, value, Choices(*choices), asked=asked)

        quiet: dict[str, Any] = {"show_progress": "hidden", "api_visibility": "private"}
        decoder.change(_fields_of, decoder, [width, alternatives], **quiet)
        changes = [picture.change, model.change, decoder.change, width.change, alternatives.change, allowed.change]
        gradio.on(changes, lambda *held: read(False, *held), fields, result, trigger_mode="always_last", **quiet)
        gradio.on([button.click, allowed.submit], lambda *held: read(True, *held), fields, result, **quiet)
    return page


def _fields_of(decoder: str) -> tuple[Any, Any]:
    """Shows the fields that count for a decoder."""
    return gradio.update(visible=decoder == BEAM), gradio.update(visible=decoder != GREEDY)


def _read(reader: Reader, model: Model, limits: ImageLimits, value: object, choices: Choices, *, asked: bool) -> str:
    """Reads what the page holds; that there is no picture yet is told only to who asks for a reading."""
    try:
        picture = picture_of(value)
    except GlyphlineError as error:
        return render(Problem(explain(error)))
    if picture is None and not asked:
        return WAITING
    return render(read_picture(reader, picture, model, choices, limits))


def resource(name: str) -> str:
    """Reads a file that lies beside this one."""
    return files("glyphline.service.playground").joinpath(name).read_text(encoding="utf-8")
