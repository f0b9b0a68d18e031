"""The promises the folder layout rests on."""

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PARTS = ("service", "training", "models", "protos")
PACKAGES = {
    "glyphline.models": ROOT / "models/glyphline/models",
    "glyphline.training": ROOT / "training/glyphline/training",
    "glyphline.service": ROOT / "service/glyphline/service",
    "glyphline.cli": ROOT / "service/glyphline/cli",
}
# What each package may never import, at the top of a module or anywhere below it.
FORBIDDEN = {
    "glyphline.models": (
        "torch",
        "torchvision",
        "pytorch_lightning",
        "grpc",
        "google.protobuf",
        "glyphline.recognition",
        "glyphline.open_inference",
        "glyphline.training",
        "glyphline.service",
        "glyphline.cli",
    ),
    "glyphline.training": (
        "grpc",
        "glyphline.recognition",
        "glyphline.open_inference",
        "glyphline.service",
        "glyphline.cli",
    ),
    "glyphline.service": ("torch", "torchvision", "pytorch_lightning", "glyphline.training", "glyphline.cli"),
    "glyphline.cli": (),
}


def python_files(package: str) -> list[Path]:
    return sorted(PACKAGES[package].rglob("*.py"))


def imported_names(source: str, module: str) -> Iterator[tuple[int, str]]:
    """Every module a source names for import, with its line: statements wherever they stand, and names in strings.

    Args:
        source: Python source.
        module: Package that relative imports start from.

    Yields:
        Line number and dotted name. For `from a import b`, both `a` and `a.b`.
    """
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield node.lineno, alias.name
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                parents = module.split(".")[: len(module.split(".")) - node.level + 1]
                base = ".".join([*parents, base] if base else parents)
            yield node.lineno, base
            for alias in node.names:
                yield node.lineno, f"{base}.{alias.name}"
        elif isinstance(node, ast.Constant) and re.fullmatch(r"glyphline(\.\w+)+", str(node.value)):
            yield node.lineno, str(node.value)  # a module handed to importlib by its name


def is_within(name: str, package: str) -> bool:
    return name == package or name.startswith(f"{package}.")


@pytest.mark.parametrize("part", PARTS)
def test_glyphline_stays_a_namespace_package(part: str) -> None:
    # One glyphline/__init__.py would hide every other folder's part of the package.
    assert (ROOT / part / "glyphline").is_dir()
    assert not (ROOT / part / "glyphline" / "__init__.py").exists()


@pytest.mark.parametrize("package", PACKAGES)
def test_every_package_is_typed_documented_and_says_what_it_exports(package: str) -> None:
    folder = PACKAGES[package]
    assert (folder / "py.typed").is_file()
    tree = ast.parse((folder / "__init__.py").read_text(encoding="utf-8"))
    assert ast.get_docstring(tree)


@pytest.mark.parametrize("package", PACKAGES)
def test_packages_import_only_what_they_may(package: str) -> None:
    found = []
    for path in python_files(package):
        folder = path.parent.relative_to(PACKAGES[package])
        module = ".".join([package, *folder.parts])
        for line, name in imported_names(path.read_text(encoding="utf-8"), module):
            if any(is_within(name, forbidden) for forbidden in FORBIDDEN[package]):
                found.append(f"{path.relative_to(ROOT)}:{line} imports {name}")
    assert not found, "\n".join(found)


def test_the_import_analysis_sees_every_kind_of_import() -> None:
    source = """
import os, torch.nn as nn
from glyphline import training
def late():
    from ..service.client import Client
    importlib.import_module("glyphline.training.loop")
"""
    names = {name for _, name in imported_names(source, "glyphline.models.decoding")}
    assert {"os", "torch.nn", "glyphline.training", "glyphline.models.service.client"} <= names
    assert "glyphline.training.loop" in names


def loaded_after(statement: str) -> set[str]:
    """Top-level modules and glyphline's packages that a fresh interpreter holds after a statement."""
    program = f"import sys\n{statement}\nprint(*sys.modules, sep='\\n')"
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False, cwd=ROOT)
    assert run.returncode == 0, run.stderr
    return {".".join(name.split(".")[:2]) if name.startswith("glyphline.") else name for name in run.stdout.split()}


def test_models_load_no_framework_and_the_runtime_only_when_needed() -> None:
    loaded = loaded_after("import glyphline.models; from glyphline.models import *")
    assert "glyphline.models" in loaded
    assert not loaded & {"torch", "grpc", "google.protobuf", "onnxruntime", "glyphline.training", "glyphline.service"}


def test_no_module_of_models_loads_torch_or_grpc() -> None:
    names = sorted(
        ".".join(["glyphline.models", *path.relative_to(PACKAGES["glyphline.models"]).with_suffix("").parts])
        for path in python_files("glyphline.models")
    )
    imports = "\n".join(f"import {name.removesuffix('.__init__')}" for name in names)
    loaded = loaded_after(imports)
    assert not loaded & {"torch", "grpc", "google.protobuf", "glyphline.training", "glyphline.service", "glyphline.cli"}


def test_the_service_loads_without_torch_or_training() -> None:
    loaded = loaded_after("import glyphline.service")
    assert not loaded & {"torch", "glyphline.training"}


def test_the_command_line_starts_without_torch() -> None:
    loaded = loaded_after("import glyphline.cli")
    assert not loaded & {"torch", "onnxruntime", "glyphline.training"}


def test_a_stray_init_file_stops_the_tests_with_the_reason(tmp_path: Path) -> None:
    tests = tmp_path / "tests"
    tests.mkdir()
    (tests / "conftest.py").write_bytes((ROOT / "tests" / "conftest.py").read_bytes())
    stray = tmp_path / "service" / "glyphline" / "__init__.py"
    stray.parent.mkdir(parents=True)
    stray.touch()
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--rootdir", str(tmp_path), str(tests)]
    run = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path)
    assert run.returncode == pytest.ExitCode.USAGE_ERROR
    assert f"remove {stray}: glyphline spans four folders" in run.stdout + run.stderr
