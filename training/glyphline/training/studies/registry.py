"""Which studies there are. A further one is a module with a `STUDY` and a line here."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from glyphline.training.errors import TrainingError
from glyphline.training.studies.study import Study

_MODULES = {
    "forget-gate": "forget_gate",
    "gradient": "gradient",
    "memory": "memory",
    "jacobian": "jacobian",
    "copy": "copying",
    "gate-trace": "gate_trace",
    "heads": "heads",
    "length": "length",
    "words": "words",
}


def study_names() -> tuple[str, ...]:
    """Names of all studies, in the order in which they explain each other."""
    return tuple(_MODULES)


def find_study(name: str) -> Study[Any]:
    """Returns a study by its name.

    Raises:
        TrainingError: If there is none of the name.
    """
    if name not in _MODULES:
        raise TrainingError(f"no study {name!r}; there are {', '.join(_MODULES)}")
    study = import_module(f"glyphline.training.studies.{_MODULES[name]}").STUDY
    assert isinstance(study, Study)
    return study
