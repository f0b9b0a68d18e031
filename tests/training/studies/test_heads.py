from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image, ImageDraw, ImageFont

from glyphline.training.studies.heads import CANVAS, LENGTHS, HeadFindings, HeadRecord, draw, tabulate, train_head

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]


def write_idx(path: Path, array: np.ndarray) -> None:
    header = bytes([0, 0, 8, array.ndim]) + b"".join(size.to_bytes(4, "big") for size in array.shape)
    path.write_bytes(header + array.astype(np.uint8).tobytes())


@pytest.fixture
def drawn_mnist(tmp_path: Path) -> Path:
    """Drawn digits where MNIST's would lie, of forty writers, so that some of each fold are there."""
    font = ImageFont.load_default(20)
    labels = np.tile(np.arange(10), 80)
    images = np.zeros((len(labels), 28, 28), np.uint8)
    for index, label in enumerate(labels):
        image = Image.new("L", (14, 28))
        ImageDraw.Draw(image).text((1, 2), str(label), fill=255, font=font)
        images[index] = np.asarray(image.resize((28, 28)))  # as wide as written digits are
    folder = tmp_path / "data" / "mnist"
    folder.mkdir(parents=True)
    write_idx(folder / "train-images-idx3-ubyte", images)
    write_idx(folder / "train-labels-idx1-ubyte", labels)
    writers = "".join(f"{index}\t{label}\t{index // 20}\n" for index, label in enumerate(labels))
    (folder / "writers.tsv").write_text("index\tlabel\twriter\n" + writers)
    return tmp_path / "data"


def test_a_head_is_trained_exported_and_measured(drawn_mnist: Path, tmp_path: Path) -> None:
    record = train_head("flatten", "gru", 0, drawn_mnist, tmp_path / "work", quick=True)
    assert record.strips_seen >= 128
    assert record.parameters > 0
    assert record.images_per_second > 0
    assert [(part.shortest, part.longest) for part in record.lengths] == list(LENGTHS)
    assert record.lengths[0].refused == 0, f"eight digits fit a canvas of {CANVAS}"
    assert record.lengths[2].refused > 0, "of 17 to 32 digits not all do"
    findings = HeadFindings((record,))
    [table] = tabulate(findings)
    assert table.rows[0][0] == "flatten, GRU"
    assert len(table.rows[0]) == len(table.headings)
    assert draw(findings).axes
    assert isinstance(record, HeadRecord)
