"""What all sections of the configuration share, and how a TOML file becomes one."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from glyphline.training.errors import TrainingError


class Section(BaseModel):
    """Base of all sections: immutable, and an unknown key is an error."""

    model_config = ConfigDict(frozen=True, extra="forbid")


Model = TypeVar("Model", bound=Section)


def _read_toml(path: Path) -> dict[str, object]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8-sig"))
    except FileNotFoundError:
        raise TrainingError(f"{path} does not exist") from None
    except UnicodeDecodeError as error:
        raise TrainingError(f"{path} is not UTF-8: {error.reason} at byte {error.start}") from None
    except tomllib.TOMLDecodeError as error:
        raise TrainingError(f"{path} is not TOML: {error}") from None


def read_section(model: type[Model], path: Path) -> Model:
    """Reads a TOML file as a section of kind `model`.

    Raises:
        TrainingError: If the file is missing, is not TOML, or does not fit; every wrong key is named.
    """
    try:
        return model.model_validate(_read_toml(path))
    except ValidationError as error:
        wrong = "; ".join(f"{'.'.join(map(str, item['loc']))}: {item['msg']}" for item in error.errors())
        raise TrainingError(f"{path}: {wrong}") from None
