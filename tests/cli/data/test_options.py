"""Formats that the options name."""

from glyphline.cli.data.options import FormatName, TargetName


def test_the_formats_are_those_of_the_readers() -> None:
    from typing import get_args  # noqa: PLC0415

    from glyphline.training.datasets.readers import FORMATS  # noqa: PLC0415
    from glyphline.training.datasets.writers import Target  # noqa: PLC0415

    assert [each.value for each in FormatName] == ["auto", *FORMATS]
    assert [each.value for each in TargetName] == list(get_args(Target))
