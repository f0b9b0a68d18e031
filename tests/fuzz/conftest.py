"""Fuzz targets are scripts that import each other from their own folder; so do their tests."""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parent))
