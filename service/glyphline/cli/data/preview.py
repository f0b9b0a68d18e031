"""`glyphline data preview`: draws a sheet of strips as the network sees them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from glyphline.cli.data.options import FormatName, FormatOption, check_exists
from glyphline.cli.group import tell
from glyphline.cli.options import DataRootOption
from glyphline.cli.training_room import training_room

EXAMPLES = """\b
Examples:
  glyphline data preview mine.toml --data-root data/ --output preview.png
  glyphline data preview strips/ --count 20 --variants 6

\b
Strips are shown as the network sees them: ink bright on dark, whatever it was on the picture, and all of one height. A
sheet that is there already is replaced.
"""


def preview(
    *,
    path: Annotated[
        Path, typer.Argument(metavar="DATASET|CONFIG", help="A data set or a configuration.", show_default=False)
    ],
    output: Annotated[Path, typer.Option(metavar="PNG", help="The sheet.")] = Path("preview.png"),
    count: Annotated[int, typer.Option(metavar="N", min=1, help="Strips of each source, or of the data set.")] = 12,
    variants: Annotated[int, typer.Option(metavar="N", min=0, help="Variants of each strip of a data set.")] = 4,
    seed: Annotated[int, typer.Option(metavar="N", min=0, help="The same seed shows the same strips.")] = 1,
    data_root: DataRootOption = Path("data"),
    format_name: FormatOption = FormatName.AUTO,
) -> None:
    """Draws strips as training has them: of each source of a configuration, or of a data set with its variants."""
    check_exists(path)
    with training_room():
        from glyphline.training.datasets.commands.preview import preview as draw

        sheet = draw(path, data_root=data_root, format=format_name.value, count=count, variants=variants, seed=seed)
        output.parent.mkdir(parents=True, exist_ok=True)
        if output.exists():
            tell(f"replaced {output}", "data preview")
        sheet.save(output, "PNG")
    print(output)
