"""What the door remembers of models does not outlive them."""

from __future__ import annotations

import gc
import weakref
from pathlib import Path

from glyphline.models.bundle import load_bundle
from glyphline.models.decoding.options import DecodingOptions
from glyphline.models.image import ImageLimits
from glyphline.models.repository import ModelRepository
from glyphline.service.admission import Admission, ReadConfig, ReadRequest
from glyphline.service.catalogue import Catalogue, ServedModel
from glyphline.service.guides import load_guides
from glyphline.service.metrics import Metrics


async def test_a_model_that_was_exchanged_is_not_kept(model_root: Path, images: list[bytes]) -> None:
    path = ModelRepository([model_root]).resolve("digits-ctc")
    catalogue = Catalogue([ServedModel.of(load_bundle(path))])
    admission = Admission(
        catalogue,
        limits=ImageLimits(),
        max_beam_width=10,
        guides=load_guides({}, {}),
        ready=lambda: True,
        metrics=Metrics(),
    )
    for decoder in ("greedy", "beam", None):
        config = ReadConfig(options=DecodingOptions(decoder, beam_width=5))
        await admission.admit(ReadRequest("name", images[0], config, None), "somebody", None)
    before = weakref.ref(catalogue.models[0].manifest)
    catalogue.replace([ServedModel.of(load_bundle(path))], {})
    admission.forget()
    gc.collect()
    assert before() is None
