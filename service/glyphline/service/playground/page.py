"""The page, made with gradio: its fields, and what is done when one changes."""

from __future__ import annotations

import os
from contextlib import suppress
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

# Before gradio is loaded: neither it nor what it brings along tells anybody that it is used.
os.environ["GRADIO_ANALYTICS_ENABLED"] = "False"
os.environ["HF_HUB_DISABLE_TELEMETRY"] = "1"

import gradio

from glyphline.models.decoding import MAX_BEAM_WIDTH
from glyphline.models.errors import GlyphlineError
from glyphline.models.image import ImageLimits
from glyphline.service.playground.choices import BEAM, DECODERS, GREEDY, Choices, Model, model_for
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
    models = reader.models()
    with gradio.Blocks(title=TITLE, analytics_enabled=False) as page:
        gradio.HTML(f"<h1>{TITLE}</h1><p>Pictures are read {reader.place}.</p>", elem_id="heading", padding=False)
        with gradio.Row(elem_id="parts"):
            with gradio.Column(elem_id="given", min_width=300):
                picture = gradio.HTML(
                    {"kind": "drawing", "address": "", "task": None},
                    html_template=resource("picture.html"),
                    js_on_load=resource("picture.js"),
                    apply_default_css=False,
                    padding=False,
                    elem_id="picture",
                    examples=[{"name": each.name, "address": each.address, "task": each.task} for each in examples()],
                    most_bytes=limits.max_bytes,
                )
                button = gradio.Button("Read", variant="primary")
            with gradio.Column(elem_id="choices", min_width=300):
                with gradio.Row():
                    labels = [each.label for each in models]
                    model = gradio.Dropdown(labels, value=chosen.label if chosen else labels[0], label="Model")
                    allowed = gradio.Textbox(label="Allowed characters", placeholder="all")
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
        desk = _Desk(reader, {each.label: each for each in models}, limits)
        quiet: dict[str, Any] = {"show_progress": "hidden", "api_visibility": "private"}
        decoder.input(_fields_of, decoder, [width, alternatives], **quiet)
        picture.change(desk.take, fields, [result, model], trigger_mode="always_last", **quiet)
        choices = [model.input, decoder.input, width.input, alternatives.input, allowed.input]
        gradio.on(choices, desk.read_again, fields, result, trigger_mode="always_last", **quiet)
        gradio.on([button.click, allowed.submit], desk.read, fields, result, **quiet)
    return page


def _fields_of(decoder: str) -> tuple[Any, Any]:
    """Shows the fields that count for a decoder."""
    return gradio.update(visible=decoder == BEAM), gradio.update(visible=decoder != GREEDY)


@dataclass(frozen=True, slots=True)
class _Desk:
    """What is done when something on the page changes. Each method takes what its fields hold, in their order.

    Attributes:
        reader: Who reads.
        models: The models, by label.
        limits: How large a picture may be.
    """

    reader: Reader
    models: dict[str, Model]
    limits: ImageLimits

    def take(self, value: object, label: str, *choices: Any) -> tuple[str, str]:  # noqa: ANN401  (what fields hold)
        """Reads a picture that has just come, by a model that can read its kind; returns that model's label, too."""
        with suppress(GlyphlineError):  # which reading will tell
            picture = picture_of(value)
            if picture is not None:
                label = model_for(picture.task, self.models[label], list(self.models.values())).label
        return self.read_again(value, label, *choices), label

    def read_again(self, value: object, label: str, *choices: Any) -> str:  # noqa: ANN401
        """Reads if there is a picture; nobody has asked for it, so that there is none is no problem."""
        return self._read(value, label, Choices(*choices), WAITING)

    def read(self, value: object, label: str, *choices: Any) -> str:  # noqa: ANN401
        """Reads what the page holds, as somebody asks for it."""
        return self._read(value, label, Choices(*choices))

    def _read(self, value: object, label: str, choices: Choices, without: str | None = None) -> str:
        try:
            picture = picture_of(value)
        except GlyphlineError as error:
            return render(Problem(explain(error)))
        if picture is None and without is not None:
            return without
        return render(read_picture(self.reader, picture, self.models[label], choices, self.limits))


def resource(name: str) -> str:
    """Reads a file that lies beside this one."""
    return files("glyphline.service.playground").joinpath(name).read_text(encoding="utf-8")
