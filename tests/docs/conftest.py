"""Modules that the tests of the documents share lie beside them, and those that make the site in scripts/."""

import sys
from pathlib import Path

sys.path += [str(Path(__file__).parent), str(Path(__file__).parents[2] / "scripts" / "documentation")]
