"""What images cost to read, beside each other."""

from __future__ import annotations

import pytest

from glyphline.models.bundle import load_bundle
from glyphline.models.decoding.options import DecodingOptions
from glyphline.models.image import normalised_width, read_image
from glyphline.models.recognizer import MAX_COLUMNS, bucket_width
from glyphline.models.repository import ModelRepository, pretrained_root
from glyphline.service.client import Client, Result
from glyphline.service.costs import reading_work

MANIFESTS = {
    name: load_bundle(ModelRepository([pretrained_root()]).resolve(name)).manifest for name in ("digits", "digits-ctc")
}


@pytest.mark.parametrize("guided", [False, True])
@pytest.mark.parametrize("name", MANIFESTS)
def test_the_greedy_search_costs_its_columns(name: str, guided: bool) -> None:
    assert reading_work(208, MANIFESTS[name], 1, guided=guided) == 208


def test_a_beam_costs_by_its_width_and_by_what_it_searches() -> None:
    ctc, step_wise = MANIFESTS["digits-ctc"], MANIFESTS["digits"]
    assert reading_work(1000, ctc, 101, guided=False) == 2000
    assert reading_work(1000, ctc, 101, guided=True) == 5000
    assert reading_work(1200, step_wise, 101, guided=False) == 1200 + 10_000


def test_a_wide_beam_makes_batches_smaller(client: Client, images: list[bytes]) -> None:
    manifest, image = MANIFESTS["digits"], read_image(images[0])
    columns = bucket_width(normalised_width(image.width, image.height, manifest.image))
    most = max(1, MAX_COLUMNS // reading_work(columns, manifest, 100, guided=False))
    options = DecodingOptions("beam", beam_width=100)
    results = client.recognize_many([images[0]] * 32, model="digits", options=options)
    sizes = [result.metadata.batch_size for result in results if isinstance(result, Result)]
    assert len(sizes) == 32
    assert max(sizes) <= most < 16
