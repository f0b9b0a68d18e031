"""Reads text lines from images: the one way from pixels to text, for training, serving, jobs and tests alike."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Self

import numpy as np
from numpy.typing import NDArray

from glyphline.models.alphabet import Alphabet
from glyphline.models.bundle import Bundle, load_bundle
from glyphline.models.decoding.language_model import CharacterModel
from glyphline.models.decoding.options import DecodingOptions, ResolvedOptions
from glyphline.models.decoding.readings import Hypothesis, Reading
from glyphline.models.errors import BundleError, ImageError, OptionsError
from glyphline.models.gpu import TENSORRT
from glyphline.models.heads import CtcHead, Head, open_head
from glyphline.models.image import GreyImage, ImageLimits, normalise, read_image
from glyphline.models.interpreting import interpret
from glyphline.models.joining import Run
from glyphline.models.long_lines import LONGEST_LINE, WINDOW, plan_windows, readable_width, widest_strip
from glyphline.models.manifest import MANIFEST_NAME, Aggregate, LogOdds, Precision, Search
from glyphline.models.repository import DEFAULT_NAME, ModelRepository, pretrained_root
from glyphline.models.runs import BUCKET_STEP, MAX_COLUMNS, RunPlanner, bucket_width
from glyphline.models.session import Device, Provider
from glyphline.models.timings import StageTimings

__all__ = ["BUCKET_STEP", "MAX_COLUMNS", "Recognizer", "StageTimings", "bucket_width", "load_recognizer"]

_PROBE_TOLERANCE = 1e-2  # of confidence; processors and versions of ONNX Runtime differ by far less

_ROUGH_TOLERANCE = 3e-2  # the same where sums are rounded to bfloat16 or TF32

_DEFAULT_OPTIONS = DecodingOptions()
_DEFAULT_LIMITS = ImageLimits()


@dataclass(frozen=True, slots=True, eq=False)
class _Strip:
    """A normalised image with what is needed to find its place among the outcomes and in the original."""

    index: int
    pixels: NDArray[np.uint8]
    width: int
    height: int

    @property
    def columns(self) -> int:
        """Width after normalisation."""
        return int(self.pixels.shape[1])


class Recognizer:
    """Reads text lines from images with one bundle.

    It holds no state between calls and may be used from several threads at once. What it makes of an image depends on
    neither the other images of the call nor their order.
    """

    def __init__(
        self,
        bundle: Bundle,
        head: Head,
        precision: Precision = "fp32",
        threads: int = 1,
        language_model: CharacterModel | None = None,
    ) -> None:
        """Puts a recogniser together; `load` is the usual way to one.

        Args:
            bundle: What is read, and how.
            head: The opened networks of the bundle.
            precision: Which variant of the networks they are.
            threads: Threads that images are decoded with.
            language_model: The bundle's own.
        """
        self.bundle = bundle
        self.language_model = language_model
        self.precision = precision
        self.alphabet = Alphabet(bundle.manifest.alphabet)
        self._head = head
        self._threads = threads
        self._decoders = ThreadPoolExecutor(threads, "glyphline-decode") if threads > 1 else None
        self._planner = RunPlanner(bundle.manifest, head.provider)
        self._settings = bundle.manifest.image.model_copy(update={"max_width": widest_strip(bundle.manifest)})

    @classmethod
    def load(
        cls,
        bundle: Bundle,
        *,
        device: Device = "cpu",
        threads: int = 1,
        allow_cpu_fallback: bool = False,
        provider: Provider = "onnxruntime",
        precision: Precision = "fp32",
        memory: int | None = None,
        verify_probe: bool = True,
    ) -> Self:
        """Opens the networks of a bundle and makes sure that they read what they should.

        Args:
            bundle: A verified bundle.
            device: Where to run: `cpu`, `cuda`, or `cuda:1` and so on.
            threads: Threads that one call may use, to decode images and within the networks.
            allow_cpu_fallback: Whether the CPU will do if the device is not to be had.
            provider: What runs them there.
            precision: Which variant of the networks.
            memory: Most bytes that each graph may keep on a GPU; None for as many as it takes.
            verify_probe: Whether to read the bundle's probe image and compare.

        Returns:
            The recogniser.

        Raises:
            BundleError: If a graph cannot be opened, does not fit the manifest, or misreads the probe.
            DeviceError: If the device is not available, or ONNX Runtime is not.
        """
        alphabet = Alphabet(bundle.manifest.alphabet)
        head = open_head(
            bundle,
            alphabet,
            device,
            threads,
            allow_cpu_fallback=allow_cpu_fallback,
            provider=provider,
            precision=precision,
            memory=memory,
        )
        recognizer = cls(bundle, head, precision, threads, _read_language_model(bundle, alphabet))
        if verify_probe:
            recognizer.verify_probe()
        return recognizer

    @property
    def provider(self) -> str:
        """What the networks really run on, such as `CPUExecutionProvider`, with the variant if it is not the usual."""
        return self._head.provider if self.precision == "fp32" else f"{self._head.provider} {self.precision}"

    def shapes(self, max_batch: int = 32) -> list[tuple[int, int]]:
        """Lists the shapes that the provider prepares itself for, so that all can be run before anybody waits.

        Lines beyond `image.max_width` are not among them: their shapes come with them.

        Args:
            max_batch: Most images of one run.

        Returns:
            Images and width of every run that strips can come to, those that take most memory first, so that what the
            others need is there already; nothing for ONNX Runtime's CPU kernels, which take any shape as it comes.
        """
        return self._planner.shapes(max_batch)

    def with_confidence(
        self, *, temperature: float, aggregate: Aggregate = "product", odds: Mapping[Search, LogOdds] | None = None
    ) -> Self:
        """Returns the same recogniser with other confidences; the networks are shared, the texts stay the same.

        Args:
            temperature: Log-probabilities are divided by it; above 0.
            aggregate: How a text's confidence is made of those of its symbols.
            odds: What takes its place, by the kind of search.
        """
        changes = {"temperature": temperature, "confidence": aggregate, "odds": dict(odds or {})}
        manifest = self.bundle.manifest.model_copy(update=changes)
        bundle = replace(self.bundle, manifest=manifest)
        return type(self)(bundle, self._head, self.precision, self._threads, self.language_model)

    def recognize(
        self,
        images: Sequence[bytes | GreyImage],
        options: DecodingOptions = _DEFAULT_OPTIONS,
        *,
        limits: ImageLimits = _DEFAULT_LIMITS,
        max_batch: int = 32,
        timings: StageTimings | None = None,
    ) -> list[Reading | ImageError]:
        """Reads images.

        Args:
            images: Image files, or images already decoded.
            options: How to decode.
            limits: How large an image file may be.
            max_batch: Most images that go through the networks at once. Of wide images fewer do, so that memory stays
                bounded.
            timings: Is told where the time goes.

        Returns:
            One outcome per image, in order. An image that cannot be read yields its error and harms no other; an image
            without writing yields a reading with an empty text.

        Raises:
            OptionsError: If an option cannot be honoured. No image is read then.
        """
        if max_batch < 1:
            raise OptionsError("max_batch", f"must be at least 1, not {max_batch}")
        timings = timings if timings is not None else StageTimings()
        manifest = self.bundle.manifest
        resolved = options.resolve(self.alphabet, manifest.decoder, manifest.max_output_length, self.language_model)
        outcomes: dict[int, Reading | ImageError] = {}
        strips: list[_Strip] = []
        with timings.measure("decode_image"):
            for index, prepared in enumerate(self._prepare_all(images, limits)):
                if isinstance(prepared, ImageError):
                    outcomes[index] = prepared
                else:
                    strips.append(prepared)
        strips.sort(key=lambda strip: strip.columns)
        widest = self._planner.padded(manifest.image.max_width)
        while strips and strips[-1].columns > widest:
            # A limit on the text's length is meant for strips: of a line it would cut off most.
            unlimited = replace(resolved, max_output_length=options.max_output_length or LONGEST_LINE)
            line = strips.pop()
            outcomes[line.index] = self._read_line(line, unlimited, timings)
        for runs in self._planner.plan([strip.columns for strip in strips], max_batch):
            members = [strips[begin:end] for begin, end in runs]
            outcomes.update(self._read_runs(members, resolved, timings))
        return [outcomes[index] for index in range(len(images))]

    def verify_probe(self) -> None:
        """Reads the bundle's probe image and compares.

        Raises:
            BundleError: If the text differs, or the confidence by more than rounding explains.
        """
        probe = self.bundle.manifest.probe
        file = self.bundle.file(probe.image)
        try:
            (outcome,) = self.recognize([file.read_bytes()])
        except OSError as error:
            raise BundleError(f"{file}: {error.strerror}") from error
        if isinstance(outcome, ImageError):
            raise BundleError(f"{file}: the probe cannot be read: {outcome}") from outcome
        if outcome.text != probe.text:
            raise BundleError(f"{file}: the probe reads {outcome.text!r}, {MANIFEST_NAME} says {probe.text!r}")
        expected = probe.confidence
        if self.precision != "fp32":
            expected = self.bundle.manifest.variants[self.precision].confidence
        tolerance = _ROUGH_TOLERANCE if self._head.provider.startswith(("OpenVINO", TENSORRT)) else _PROBE_TOLERANCE
        if not abs(outcome.confidence - expected) <= tolerance:
            raise BundleError(
                f"{file}: the probe's confidence is {outcome.confidence:.4f}, {MANIFEST_NAME} says {expected:.4f}"
            )

    def _prepare_all(self, images: Sequence[bytes | GreyImage], limits: ImageLimits) -> Iterable[_Strip | ImageError]:
        """Yields for each image its strip, or why there is none, in order."""

        def prepare(numbered: tuple[int, bytes | GreyImage]) -> _Strip | ImageError:
            try:
                return self._prepare(*numbered, limits)
            except ImageError as error:
                return error

        # One thread would keep a GPU waiting: decoding takes a CPU core longer than reading takes it.
        if self._decoders is None or len(images) < 2:
            return map(prepare, enumerate(images))
        return self._decoders.map(prepare, enumerate(images))

    def _prepare(self, index: int, image: bytes | GreyImage, limits: ImageLimits) -> _Strip:
        grey = image if isinstance(image, GreyImage) else read_image(image, limits)
        readable_width(grey.width, grey.height, self.bundle.manifest)  # refuses what `normalise` would refuse less well
        return _Strip(index, normalise(grey, self._settings), grey.width, grey.height)

    def _read_runs(
        self, runs: Sequence[Sequence[_Strip]], options: ResolvedOptions, timings: StageTimings
    ) -> Iterator[tuple[int, Reading]]:
        """Reads the strips of several runs."""
        batches = [self._batch(run, timings) for run in runs]
        found = self._head.read(batches, options, self.bundle.manifest.temperature, timings)
        strips = [strip for run in runs for strip in run]
        with timings.measure("search"):
            for hypotheses, strip in zip(found, strips, strict=True):
                yield strip.index, self._interpret(hypotheses, strip, options)

    def _batch(self, strips: Sequence[_Strip], timings: StageTimings) -> Run:
        """Pads the strips of one run to the widest of them, which is the last."""
        width = self._planner.padded(strips[-1].columns)
        images = np.zeros((len(strips), 1, self.bundle.manifest.image.height, width), dtype=np.uint8)
        widths = np.array([strip.columns for strip in strips], dtype=np.int64)
        for image, strip in zip(images, strips, strict=True):
            image[0, :, : strip.columns] = strip.pixels
        timings.batches.append((len(strips), 1.0 - float(widths.sum()) / (len(strips) * width)))
        return images, widths

    def _read_line(self, strip: _Strip, options: ResolvedOptions, timings: StageTimings) -> Reading:
        """Reads a strip that is too wide to be read in one piece; only a CTC head is given such."""
        assert isinstance(self._head, CtcHead)
        windows = plan_windows(strip.pixels.shape[1])
        found = self._head.read_windows(
            strip.pixels, windows, MAX_COLUMNS // WINDOW, options, self.bundle.manifest.temperature, timings
        )
        with timings.measure("search"):
            return self._interpret(found, strip, options)

    def _interpret(self, hypotheses: Sequence[Hypothesis], strip: _Strip, options: ResolvedOptions) -> Reading:
        return interpret(
            hypotheses,
            self.bundle.manifest,
            self.alphabet,
            width=strip.width,
            height=strip.height,
            token_details=options.token_details,
        )


def _read_language_model(bundle: Bundle, alphabet: Alphabet) -> CharacterModel | None:
    """Reads the bundle's own language model and makes it ready.

    Raises:
        BundleError: If it is no such model, or knows nothing of the alphabet.
    """
    name = bundle.manifest.decoder.language_model
    if name is None:
        return None
    try:
        model = CharacterModel.read(bundle.file(name))
        model.bind(alphabet)
    except OptionsError as error:
        raise BundleError(f"{bundle.file(name)}: {error.message}") from error
    return model


def load_recognizer(
    name_or_path: str | Path = DEFAULT_NAME,
    *,
    version: int | None = None,
    device: Device = "cpu",
    threads: int = 1,
    allow_cpu_fallback: bool = False,
    provider: Provider = "onnxruntime",
    precision: Precision = "fp32",
    verify_probe: bool = True,
) -> Recognizer:
    """Loads a recogniser by the name of a shipped model or from the folder of a bundle.

    Args:
        name_or_path: A folder with a manifest, or the name of a model that comes with the package.
        version: Of a shipped model; None means the latest.
        device: Where to run.
        threads: Threads that one call may use within the networks.
        allow_cpu_fallback: Whether the CPU will do if the device is not to be had.
        provider: What runs the networks there.
        precision: Which variant of the networks.
        verify_probe: Whether to read the bundle's probe image and compare.

    Returns:
        The recogniser.

    Raises:
        ModelNotFoundError: If the name is neither a folder with a manifest nor that of a shipped model.
        BundleError: If the bundle is damaged.
        DeviceError: If the device is not available, or ONNX Runtime is not.
    """
    if isinstance(name_or_path, Path) or (Path(name_or_path) / MANIFEST_NAME).is_file():
        bundle = load_bundle(name_or_path)
    else:
        bundle = ModelRepository([pretrained_root()]).load(name_or_path, version)
    return Recognizer.load(
        bundle,
        device=device,
        threads=threads,
        allow_cpu_fallback=allow_cpu_fallback,
        provider=provider,
        precision=precision,
        verify_probe=verify_probe,
    )
