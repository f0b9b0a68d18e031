"""Fetching word lists: what is left out."""

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

SCRIPTS = Path(__file__).parents[2] / "scripts"


@pytest.fixture(scope="module")
def script() -> ModuleType:
    specification = importlib.util.spec_from_file_location("fetch_words", SCRIPTS / "fetch_words.py")
    assert specification is not None
    assert specification.loader is not None
    module = importlib.util.module_from_spec(specification)
    sys.modules["fetch_words"] = module
    specification.loader.exec_module(module)
    return module


def test_vulgar_words_their_forms_and_compounds_are_left_out(script: ModuleType) -> None:
    words = ["passage", "ass", "asses", "Bloody's", "bloodyminded", "blood", "Blood", ""]
    assert script.clean(words, ["ass", "bloody", "two words"]) == (["passage", "asses", "blood", "Blood"], 3)


def test_flags_and_repetitions_go(script: ModuleType) -> None:
    assert script.clean(["Haus/S", "Haus/T", "u\u0308ber"], []) == (["Haus", "über"], 0)


def test_every_list_has_a_licence_and_a_language(script: ModuleType) -> None:
    assert len({entry.name for entry in script.LISTS}) == len(script.LISTS)
    assert all(entry.licence and entry.language for entry in script.LISTS)


def test_places_are_those_that_speak_german_and_give_streets_their_names(script: ModuleType) -> None:
    cities = [
        {"name": "Zossen", "countrycode": "DE"},
        {"name": "Wien", "countrycode": "AT"},
        {"name": "Lyon", "countrycode": "FR"},
        {"name": "Adliswil / Tal", "countrycode": "CH"},
        {"name": "Bad Ischl", "countrycode": "AT"},
        {"name": "Halle", "countrycode": "DE"},
    ]
    assert script.place_names(cities) == [
        "Bad Ischl",
        "Halle",
        "Hallestraße",
        "Wien",
        "Wiener Weg",
        "Zossen",
        "Zossener Allee",
    ]
