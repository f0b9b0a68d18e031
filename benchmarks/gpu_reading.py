"""Whether a device reads what the CPU reads, in any company and of any width, refuses what it must, and stays flat.

Two readings are alike if their texts are the same and their confidences and scores differ by no more than rounding
explains. Where two texts score the same up to that, either may come first: that is a tie, and no difference.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from gpu_figures import MEBIBYTE, Check, Scale, memory_in_use
from strips import STRIPS, load_strips

from glyphline.models.bundle import Bundle
from glyphline.models.decoding import DecodingOptions, Reading
from glyphline.models.devices import Device, gpu_number
from glyphline.models.errors import BundleError, DeviceError, ImageError
from glyphline.models.image import GreyImage, read_image
from glyphline.models.recognizer import Recognizer
from glyphline.models.session import open_session

CONFIDENCE_TOLERANCE = 5e-3
SCORE_TOLERANCE = 1e-2  # of a text's log-probability, and a tenth of it for each symbol besides
TENSORRT_FACTOR = 10.0
FLAT = 64 * MEBIBYTE
MAX_BATCH = 32
WORDS = STRIPS.parent / "words"
SEARCHES = {"greedy": DecodingOptions("greedy"), "beam": DecodingOptions("beam", 10, max_alternatives=3)}


def real_strips(bundle: Bundle, count: int) -> list[bytes]:
    """Returns files of strips that a model is made for."""
    folder: Path = WORDS if bundle.manifest.name == "words" else STRIPS
    return load_strips(folder, count, bundle.manifest.image)


def strip_of_width(bundle: Bundle, columns: int, content: bytes) -> GreyImage:
    """Returns an image whose normalised strip is so many columns wide: a real one, again and again."""
    picture = read_image(content).pixels
    height = bundle.manifest.image.height
    scaled = picture[np.arange(height) * picture.shape[0] // height]
    wanted = max(1, columns - 2 * bundle.manifest.image.padding)
    return GreyImage(np.ascontiguousarray(np.tile(scaled, (1, -(-wanted // scaled.shape[1])))[:, :wanted]))


def compare(
    name: str, ours: Sequence[Reading | ImageError], theirs: Sequence[Reading | ImageError], factor: float = 1.0
) -> Check:
    """Compares readings one by one; `factor` widens what is allowed."""
    different, ties, confidence, score = 0, 0, 0.0, 0.0
    for one, other in zip(ours, theirs, strict=True):
        if isinstance(one, ImageError) or isinstance(other, ImageError):
            different += type(one) is not type(other)
            continue
        gap = abs(one.alternatives[0].log_probability - other.alternatives[0].log_probability)
        allowed = factor * SCORE_TOLERANCE * (1 + 0.1 * max(len(one.text), len(other.text)))
        if one.text == other.text:
            confidence = max(confidence, abs(one.confidence - other.confidence))
            score = max(score, gap / allowed)
        elif gap <= allowed:
            ties += 1
        else:
            different += 1
    passed = not different and confidence <= factor * CONFIDENCE_TOLERANCE and score <= 1
    detail = f"{len(ours)} images, {different} different, {ties} ties; confidence ±{confidence:.1e}, score ±{score:.0%}"
    return Check(name, passed, f"{detail} of what is allowed")


def check_reading(fast: Recognizer, plain: Recognizer, scale: Scale) -> list[Check]:
    """Compares a device with the CPU: real strips by both decoders, widths, company."""
    bundle, name = fast.bundle, fast.bundle.manifest.name
    contents = real_strips(bundle, scale.strips)
    checks = [
        compare(f"{name}: {search}", fast.recognize(contents, options), plain.recognize(contents, options))
        for search, options in SEARCHES.items()
    ]
    widths = [*scale.widths, *(scale.lines if bundle.manifest.head == "ctc" else ())]
    strips = [strip_of_width(bundle, width, contents[0]) for width in widths]
    greedy = SEARCHES["greedy"]
    together = fast.recognize(strips, greedy)
    checks.append(compare(f"{name}: widths {widths[0]} to {widths[-1]}", together, plain.recognize(strips, greedy)))
    alone = [outcome for strip in strips for outcome in fast.recognize([strip], greedy)]
    checks.append(compare(f"{name}: alone and in company", together, alone))
    return checks


def check_tensorrt(plain: Recognizer, device: Device, scale: Scale) -> Check:
    """Compares TensorRT, which rounds to TF32, with the CPU; left out where it cannot be had."""
    bundle, name = plain.bundle, f"{plain.bundle.manifest.name}: TensorRT"
    try:
        rough = Recognizer.load(bundle, device=device, provider="tensorrt")
    except DeviceError as error:
        return Check(name, None, str(error)[:200])
    except BundleError as error:
        return Check(name, False, str(error)[:200])
    contents, greedy = real_strips(bundle, scale.strips), SEARCHES["greedy"]
    return compare(name, rough.recognize(contents, greedy), plain.recognize(contents, greedy), TENSORRT_FACTOR)


def check_memory(recognizer: Recognizer, device: Device, scale: Scale) -> Check:
    """Watches memory over random batches, once every shape has been run."""
    bundle, random = recognizer.bundle, np.random.default_rng(1)
    name = f"{bundle.manifest.name}: memory over {scale.batches:,} batches"
    content, widest = real_strips(bundle, 1)[0], bundle.manifest.image.max_width

    def read(count: int, width: int, search: str = "greedy") -> None:
        strip = strip_of_width(bundle, width, content)
        recognizer.recognize([strip] * count, SEARCHES[search], max_batch=MAX_BATCH)

    for count, width in recognizer.shapes(MAX_BATCH) or [(MAX_BATCH, 256), (4, widest)]:
        read(count, width)
    read(MAX_BATCH, 256, "beam")
    read(4, widest, "beam")
    middle = before = memory_in_use(device)
    if before is None:
        return Check(name, None, "nvidia-smi does not tell")
    for number in range(scale.batches):
        width = int(2 ** random.uniform(4.5, np.log2(widest)))
        count = int(random.integers(1, max(2, min(MAX_BATCH, 8192 // width) + 1)))
        read(count, width, "beam" if number % 10 == 0 else "greedy")
        if number == scale.batches // 4:
            middle = memory_in_use(device)
    after = memory_in_use(device)
    assert middle is not None and after is not None
    detail = f"{before / MEBIBYTE:.0f} MiB once all shapes were run, {middle / MEBIBYTE:.0f} after a quarter"
    return Check(name, after - middle <= FLAT, f"{detail}, {after / MEBIBYTE:.0f} at the end")


def check_refusals(bundle: Bundle, device: Device) -> list[Check]:
    """Makes sure that a device which is not there is said to be so."""
    graph = bundle.file(next(iter(bundle.manifest.graphs.values())))
    wrong = ["tpu", "cuda:0,1"] + ([] if gpu_number(device) is None else ["cuda:999"])
    checks = []
    for name in wrong:
        try:
            session = open_session(graph, name)
        except DeviceError as error:
            checks.append(Check(f"device {name} is refused", name in str(error), str(error)[:120]))
        else:
            checks.append(Check(f"device {name} is refused", False, f"it came up on {session.get_providers()[0]}"))
    return checks
