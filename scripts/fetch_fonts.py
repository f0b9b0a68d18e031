"""Fetch the fonts that strips are rendered with: `python scripts/fetch_fonts.py --output DATA/fonts`, or `make fonts`.

The families are named in `fonts.toml` beside this file. They come from the npm registry (`npm pack`) and from Debian
(`apt-get download`; nothing is installed), and land below the folder that training has its data
in (`glyphline train --data-root DATA`, `data` unless told otherwise) as TrueType or OpenType files in

    DATA/fonts/{handwriting,printed,typewriter,segment}/<file>     for digits
    DATA/fonts/{text,scene,script,mono,matrix}/<file>              for words and lines
    DATA/fonts/LICENCES.tsv      file, package, version, licence

A font whose licence is not on the list, or that lacks a character it needs, is left out with a line saying so.
A missing tool (npm, apt-get, dpkg-deb) skips its half.
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from fontTools.ttLib import TTFont, TTLibError
from PIL import Image, ImageDraw, ImageFont
from rich.console import Console

FONTS = Path(__file__).with_name("fonts.toml")
WEIGHTS = (400, 700)
NPM_GROUP = 12
console = Console(stderr=True, soft_wrap=True)


@dataclass(frozen=True, slots=True)
class Candidate:
    """A font file as fetched, before it is checked and kept.

    Attributes:
        path: The file as unpacked: woff2, woff, ttf or otf.
        folder: The kind of lettering, which is also the folder it goes to.
        package: Registry and name of the package it came in.
        version: Version of that package.
        licence: Licence identifier of the font.
    """

    path: Path
    folder: str
    package: str
    version: str
    licence: str


def fetch_fontsource(families: dict[str, list[str]], work: Path) -> Iterator[Candidate]:
    """Packs the npm packages of `families` (folder → names) and yields the weights kept of each."""
    if shutil.which("npm") is None:
        console.print("[yellow]npm is not installed: its families are skipped[/]")
        return
    names = [(folder, name) for folder, members in families.items() for name in members]
    for start in range(0, len(names), NPM_GROUP):
        group = names[start : start + NPM_GROUP]
        console.print(f"npm: {', '.join(name for _, name in group)}")
        packed = pack([name for _, name in group], work)
        for folder, name in group:
            if name not in packed:
                console.print(f"[yellow]npm has no @fontsource/{name}: left out[/]")
                continue
            yield from unpack_fontsource(packed[name], folder, name, work)


def pack(names: list[str], work: Path) -> dict[str, Path]:
    """Downloads the tarballs of `@fontsource/<name>`; one unknown name fails a call, so a failed group goes singly."""
    command = ["npm", "pack", "--json", "--pack-destination", str(work), *(f"@fontsource/{name}" for name in names)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=work)
    if done.returncode == 0:
        return {
            entry["name"].removeprefix("@fontsource/"): work / entry["filename"] for entry in json.loads(done.stdout)
        }
    if len(names) == 1:
        return {}
    return {name: path for single in names for name, path in pack([single], work).items()}


def unpack_fontsource(tarball: Path, folder: str, name: str, work: Path) -> Iterator[Candidate]:
    """Unpacks one tarball and yields its upright Latin files: weights 400 and 700, or the only one there is."""
    target = work / name
    wanted = re.compile(rf"package/(package\.json|files/{re.escape(name)}-latin-[0-9]+-normal\.woff2)")
    with tarfile.open(tarball) as archive:  # the other scripts and styles are most of it
        members = [member for member in archive if wanted.fullmatch(member.name)]
        archive.extractall(target, members, filter="data")
    tarball.unlink()
    about = json.loads((target / "package" / "package.json").read_text())
    upright = target.glob(f"package/files/{name}-latin-[0-9]*-normal.woff2")  # not latin-ext, which holds no digits
    files = {int(path.stem.split("-")[-2]): path for path in upright}
    weights = [weight for weight in WEIGHTS if weight in files] or sorted(files)[:1]
    if not weights:
        console.print(f"[yellow]@fontsource/{name} has no upright Latin file: left out[/]")
    for weight in weights:
        yield Candidate(
            files[weight], folder, f"npm:@fontsource/{name}", about["version"], str(about.get("license", "unstated"))
        )


def fetch_debian(packages: list[dict[str, str]], work: Path) -> Iterator[Candidate]:
    """Downloads Debian packages, unpacks them without installing, and yields the files named in `fonts.toml`."""
    missing = [tool for tool in ("apt-get", "dpkg-deb") if shutil.which(tool) is None]
    if missing:
        console.print(f"[yellow]{' and '.join(missing)} not installed: Debian's fonts are skipped[/]")
        return
    for entry in packages:
        package = entry["package"]
        target = work / package
        target.mkdir()
        console.print(f"apt: {package}")
        done = subprocess.run(
            ["apt-get", "download", "--quiet", package], capture_output=True, text=True, check=False, cwd=target
        )
        archives = list(target.glob("*.deb"))
        if done.returncode != 0 or not archives:
            console.print(f"[yellow]apt-get cannot download {package} (try `apt-get update`): left out[/]")
            continue
        subprocess.run(["dpkg-deb", "--extract", str(archives[0]), str(target)], check=True)
        version = archives[0].name.split("_")[1].replace("%3a", ":")
        for path in sorted(target.glob(f"usr/share/fonts/**/{entry['files']}")):
            yield Candidate(path, entry["folder"], f"debian:{package}", version, entry["licence"])


def missing_characters(path: Path, required: str) -> str:
    """Returns the characters of `required` that the font at `path` has no glyph for, or draws as nothing."""
    characters = TTFont(path).getBestCmap()
    face = ImageFont.truetype(str(path), 48)
    missing = ""
    for character in required:
        canvas = Image.new("L", (160, 160))
        ImageDraw.Draw(canvas).text((60, 60), character, font=face, fill=255)
        if ord(character) not in characters or canvas.getbbox() is None:
            missing += character
    return missing


def keep(candidate: Candidate, output: Path, licences: list[str], required: str) -> Path | None:
    """Writes a candidate below `output` as ttf or otf, or says why not and returns None."""
    if candidate.licence not in licences:
        console.print(f"[yellow]{candidate.package}: licence {candidate.licence} is not on the list: left out[/]")
        return None
    try:
        font = TTFont(candidate.path)
    except TTLibError as error:
        console.print(f"[yellow]{candidate.package}: {candidate.path.name} is damaged ({error}): left out[/]")
        return None
    font.flavor = None  # woff2 is a compressed wrapping; unwrapped, every version of Pillow reads it
    suffix = ".otf" if font.sfntVersion == "OTTO" else ".ttf"
    target = output / candidate.folder / f"{candidate.path.stem}{suffix}"
    target.parent.mkdir(parents=True, exist_ok=True)
    font.save(target)
    missing = missing_characters(target, required)
    if missing:
        console.print(f"[yellow]{target.name}: cannot draw {' '.join(missing)}: left out[/]")
        target.unlink()
        return None
    return target


def fetch(output: Path, folders: tuple[str, ...] = ()) -> int:
    """Fetches every font, or those of some folders, into `output` and returns how many were kept."""
    settings = tomllib.loads(FONTS.read_text())
    chosen = folders or tuple(settings["required"])
    fontsource = {folder: names for folder, names in settings["fontsource"].items() if folder in chosen}
    debian_packages = [entry for entry in settings["debian"] if entry["folder"] in chosen]
    table = output / "LICENCES.tsv"
    heading = "file\tpackage\tversion\tlicence\n"
    kept = table.read_text().splitlines(keepends=True)[1:] if folders and table.exists() else []
    others = [line for line in kept if line.split("/")[0] not in chosen]
    lines: list[str] = []
    with tempfile.TemporaryDirectory(prefix="glyphline-fonts-") as folder:
        (npm := Path(folder) / "npm").mkdir()
        (debian := Path(folder) / "debian").mkdir()
        for candidates in (
            fetch_fontsource(fontsource, npm),
            fetch_debian(debian_packages, debian),
        ):
            for candidate in candidates:
                path = keep(candidate, output, settings["licences"], settings["required"][candidate.folder])
                if path is not None:
                    name = path.relative_to(output).as_posix()
                    lines.append(f"{name}\t{candidate.package}\t{candidate.version}\t{candidate.licence}\n")
    if lines:
        table.write_text(heading + "".join(sorted(others + lines)))
    return len(lines)


def main() -> int:
    """Parses the command line and fetches; exits with 1 if no font could be had."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output", type=Path, default=Path("data/fonts"), help="folder to write (default: data/fonts)")
    parser.add_argument(
        "--only", action="append", default=[], metavar="FOLDER", help="fetch this folder's fonts alone; repeatable"
    )
    arguments = parser.parse_args()
    output: Path = arguments.output
    known = set(tomllib.loads(FONTS.read_text())["required"])
    if unknown := sorted(set(arguments.only) - known):
        parser.error(f"no such folder: {', '.join(unknown)}; there are {', '.join(sorted(known))}")
    kept = fetch(output, tuple(arguments.only))
    console.print(f"{kept} fonts in {output}" if kept else "[red]no font could be fetched[/]")
    return 0 if kept else 1


if __name__ == "__main__":
    sys.exit(main())
