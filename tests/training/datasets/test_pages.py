from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from glyphline.models.image import read_image
from glyphline.training.datasets.readers import read_dataset
from glyphline.training.datasets.samples import Grey
from glyphline.training.errors import DataError

WritePage = Callable[..., Path]


@pytest.fixture
def lines(strips: list[tuple[Path, str]]) -> list[tuple[Grey, str]]:
    """Real strips, as lines of a page."""
    return [(read_image(path.read_bytes()).pixels, text) for path, text in strips[:5]]


@pytest.mark.parametrize(("kind", "unit"), [("page", "pixel"), ("alto", "pixel"), ("alto", "mm10")])
def test_lines_are_cut_from_their_page(
    tmp_path: Path, write_page: WritePage, lines: list[tuple[Grey, str]], kind: str, unit: str
) -> None:
    path = write_page(tmp_path, lines, kind, unit)
    for images in (
        read_dataset(tmp_path),
        read_dataset(path),
        read_dataset(path, "page" if kind == "page" else "alto"),
    ):
        assert [image.text for image in images] == [text for _, text in lines]
        assert [image.source for image in images] == [f"p1.xml#l{number}" for number in range(len(lines))]
        for image, (pixels, _) in zip(images, lines, strict=True):
            assert np.array_equal(image.load(), pixels)
            assert np.array_equal(read_image(image.content()).pixels, pixels)
    content = path.read_text(encoding="utf-8").splitlines()
    assert all(image.source.partition("#")[2] in content[image.line - 1] for image in images), "lines are lines"


def test_a_page_at_another_resolution(tmp_path: Path, write_page: WritePage, lines: list[tuple[Grey, str]]) -> None:
    write_page(tmp_path, lines)
    with Image.open(tmp_path / "p1.png") as page:
        half, crop = page.resize((page.width // 2, page.height // 2)), page.crop((0, 0, 90, page.height))
    half.save(tmp_path / "p1.png")
    for image, (pixels, _) in zip(read_dataset(tmp_path), lines, strict=True):
        assert np.abs(np.array(image.load().shape) * 2 - pixels.shape).max() <= 4
    crop.save(tmp_path / "p1.png")
    (tmp_path / "p1.png").rename(tmp_path / "p1.tif")
    crop.save(tmp_path / "p1.tif")
    with pytest.raises(DataError, match="no other resolution of it"):
        read_dataset(tmp_path)[0].load()


PAGE_LINE = '<PcGts><Page imageFilename="p.png"><TextLine id="a">{}</TextLine></Page></PcGts>'
TEXT = "<TextEquiv><Unicode>x</Unicode></TextEquiv>"


def test_a_baseline_will_do(tmp_path: Path) -> None:
    Image.new("L", (100, 100), 255).save(tmp_path / "p.png")
    lines = "".join(
        f'<TextLine id="l{y}"><Baseline points="10,{y} 90,{y + 2}"/>{TEXT}</TextLine>' for y in (20, 40, 60)
    )
    (tmp_path / "p.xml").write_text(f'<PcGts><Page imageFilename="p.png">{lines}</Page></PcGts>')
    assert [image.load().shape for image in read_dataset(tmp_path)] == [(23, 81)] * 3
    (tmp_path / "p.xml").write_text(PAGE_LINE.format(f'<Baseline points="10,20 90,20"/>{TEXT}'))
    with pytest.raises(DataError, match=r"p\.xml, line 1: a line with a baseline alone"):
        read_dataset(tmp_path)


def test_old_points_words_and_untranscribed_lines(tmp_path: Path) -> None:
    (tmp_path / "page").mkdir()
    Image.new("L", (50, 30), 255).save(tmp_path / "p.png")  # Transkribus puts the XML into a folder `page`
    points = "".join(f'<Point x="{x}" y="{y}"/>' for x, y in ((1, 1), (20, 1), (20, 9), (1, 9)))
    coordinates = f"<Coords>{points}</Coords>"
    words = "".join(f"<Word><TextEquiv><Unicode>{word}</Unicode></TextEquiv></Word>" for word in ("ab", "cd"))
    lines = f'<TextLine id="1">{coordinates}{words}</TextLine><TextLine id="2">{coordinates}</TextLine>'
    (tmp_path / "page" / "p.xml").write_text(f"<PcGts><Page>{lines}</Page></PcGts>")
    (tmp_path / "mets.xml").write_text("<mets/>")
    [image] = read_dataset(tmp_path)
    assert (image.text, image.load().shape) == ("ab cd", (9, 20))


def test_hyphens_and_polygons_of_alto(tmp_path: Path) -> None:
    Image.new("L", (50, 30), 255).save(tmp_path / "p.png")
    line = (
        '<TextLine ID="a"><Shape><Polygon POINTS="{}"/></Shape><String CONTENT="Wör"/><String CONTENT="ter"/>'
        '<HYP CONTENT="-"/></TextLine>'
    )
    template = "<alto><Layout><Page>{}</Page></Layout></alto>"
    (tmp_path / "p.xml").write_text(template.format(line.format("1 1 20 1 20 9 1 9")), encoding="utf-8")
    [image] = read_dataset(tmp_path)
    assert (image.text, image.load().shape) == ("Wör ter-", (9, 20))
    [boxed] = read_dataset(tmp_path, cut="box")
    assert boxed.load().shape == (9, 20)
    (tmp_path / "p.xml").write_text(template.format(line.format("1 1 2")), encoding="utf-8")
    with pytest.raises(DataError, match=r"p\.xml, line 1: Polygon has no POINTS"):
        read_dataset(tmp_path)


def test_entities_are_refused(tmp_path: Path) -> None:
    (tmp_path / "p.xml").write_text('<!DOCTYPE a [<!ENTITY a SYSTEM "file:///etc/passwd">]><PcGts>&a;</PcGts>')
    with pytest.raises(DataError, match="defines entities"):
        read_dataset(tmp_path)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("<PcGts><Page>", r"p\.xml is not XML"),
        ("<a>" * 300, "nested more than"),
        ('<?xml version="1.0" encoding="big5"?><PcGts/>', "save it as UTF-8"),
        (PAGE_LINE.format(f'<Coords points="1,1 2"/>{TEXT}'), "Coords has no points"),
        (PAGE_LINE.format(TEXT), "neither polygon nor baseline"),
        ("<PcGts/>", "not PAGE XML"),
    ],
)
def test_faults_are_named(tmp_path: Path, content: str, message: str) -> None:
    Image.new("L", (50, 30), 255).save(tmp_path / "p.png")
    (tmp_path / "p.xml").write_text(content)
    with pytest.raises(DataError, match=message):
        read_dataset(tmp_path / "p.xml", "page")


def test_a_missing_page_is_named(tmp_path: Path) -> None:
    (tmp_path / "p.xml").write_text(PAGE_LINE.format(TEXT).replace("p.png", "../../secret.png"))
    with pytest.raises(DataError, match=r"secret\.png', is not beside it"):
        read_dataset(tmp_path)
