"""Settings come from arguments and the environment, and are checked."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from pydantic import ValidationError

from glyphline.models.session import most_workers
from glyphline.service.settings import ServerSettings, unknown_variables

if TYPE_CHECKING:
    from tests.service.conftest import ServerProcess


def test_the_environment_sets_any_field(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GLYPHLINE_PORT", "8500")
    monkeypatch.setenv("GLYPHLINE_MODELS", "digits, digits-ctc:1")
    monkeypatch.setenv("GLYPHLINE_MODEL_REPOSITORY", "/srv/models")
    settings = ServerSettings()
    assert settings.port == 8500
    assert settings.models == ["digits", "digits-ctc:1"]
    assert settings.model_repository == Path("/srv/models")


def test_arguments_count_more_than_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GLYPHLINE_PORT", "8500")
    assert ServerSettings(port=8600).port == 8600


def test_no_models_named_means_all() -> None:
    assert ServerSettings(models=[]).models is None


@pytest.mark.parametrize(
    "values", [{"port": 70_000}, {"max_batch": 0}, {"drain_seconds": -1}, {"device": "tpu"}, {"unknown": 1}]
)
def test_values_out_of_range_are_refused(values: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        ServerSettings(**values)  # type: ignore[arg-type]


def test_a_call_may_not_have_more_images_than_the_queue_takes() -> None:
    assert ServerSettings(max_queue=10).request_images == 10


def test_limits_of_images() -> None:
    limits = ServerSettings(max_image_bytes=10, max_pixels=20).limits
    assert (limits.max_bytes, limits.max_pixels) == (10, 20)


def test_guides_are_written_name_equals_file(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GLYPHLINE_LEXICONS", "streets=a.txt, names = b/c.txt")
    settings = ServerSettings(language_models=["letters=l=1.arpa"])  # type: ignore[arg-type]
    assert settings.lexicons == {"streets": Path("a.txt"), "names": Path("b/c.txt")}
    assert settings.language_models == {"letters": Path("l=1.arpa")}
    for wrong in ("a.txt", "=a.txt", "name=", "a=1,a=2"):
        with pytest.raises(ValidationError, match=r"name=file|two files"):
            ServerSettings(lexicons=wrong)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"tls_certificate": "a.pem"}, "go together"),
        ({"tls_key": "a.key"}, "go together"),
        ({"tls_client_ca": "ca.pem"}, "needs --tls-certificate"),
        ({"tokens": "t", "host": "0.0.0.0"}, "--allow-tokens-without-tls"),
        ({"tokens": "t", "host": "example.org"}, "--allow-tokens-without-tls"),
    ],
)
def test_half_of_a_protection_is_refused(given: dict[str, Any], words: str) -> None:
    with pytest.raises(ValidationError, match=words):
        ServerSettings(**given)


@pytest.mark.parametrize(
    "given",
    [
        {"tokens": "t"},
        {"tokens": "t", "host": "::1"},
        {"tokens": "t", "host": "localhost"},
        {"tokens": "t", "host": "0.0.0.0", "allow_tokens_without_tls": True},
        {"tokens": "t", "host": "0.0.0.0", "tls_certificate": "a.pem", "tls_key": "a.key"},
    ],
)
def test_tokens_are_taken_where_nobody_on_the_way_can_read_them(given: dict[str, Any]) -> None:
    assert ServerSettings(**given).tokens == Path("t")


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("GLYPHLINE_MAX_BACH", "GLYPHLINE_MAX_BATCH"),
        ("GLYPHLINE_TLS_CERT", "GLYPHLINE_TLS_CERTIFICATE"),
        ("glyphline_mx_queue", "GLYPHLINE_MAX_QUEUE"),
        ("GLYPHLINE_SOMETHING_ELSE", ""),
    ],
)
def test_a_variable_that_is_no_setting_is_found(name: str, meant: str) -> None:
    assert unknown_variables(["PATH", name, "GLYPHLINE_PORT", "glyphline_workers"]) == [(name, meant)]


def test_variables_of_other_commands_and_of_kubernetes_are_none_of_them() -> None:
    names = ["DATA_ROOT", "TOKEN_FILE", "SERVICE_HOST", "SERVICE_PORT", "SERVICE_PORT_GRPC", "PORT_50051_TCP_ADDR"]
    assert unknown_variables(f"GLYPHLINE_{name}" for name in names) == []


def test_a_server_says_so(start: Callable[..., ServerProcess], tmp_path: Path) -> None:
    server = start(max_bach=3, model_repository=tmp_path)
    assert server.wait() == 1  # for another reason
    line = server.wait_for_line(
        "GLYPHLINE_MAX_BACH is no setting and changes nothing; did you mean GLYPHLINE_MAX_BATCH?"
    )
    assert line["level"] == "warning"


def test_workers_by_the_hundred_are_refused() -> None:
    most = most_workers()
    assert most >= 16
    assert ServerSettings(workers=most).worker_count == most
    with pytest.raises(ValidationError, match=f"at most {most} here"):
        ServerSettings(workers=most + 1)
