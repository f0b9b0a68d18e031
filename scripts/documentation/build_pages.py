"""Write the pages of the documentation's site for MkDocs to build: `python scripts/documentation/build_pages.py`.

Then `mkdocs build --strict` makes build/site of them; `make docs` does both.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from pages import gather

ROOT = Path(__file__).parents[2]


def main() -> None:
    """Parses the command line and writes."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    default = ROOT / "build" / "pages"
    parser.add_argument(
        "output", type=Path, nargs="?", default=default, help="folder to write to (default: build/pages)"
    )
    try:
        gather(ROOT, parser.parse_args().output)
    except FileExistsError as error:
        parser.error(str(error))


if __name__ == "__main__":
    main()
