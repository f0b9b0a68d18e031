import errno
from pathlib import Path

import grpc
import pytest

from glyphline.cli.exit_codes import CommandError, ExitCode, exit_code_of
from glyphline.models import errors
from glyphline.service.client import (
    DeadlineExceededError,
    InvalidRequestError,
    NotFoundError,
    OverloadedError,
    UnavailableError,
)
from glyphline.service.errors import DeviceRefusedError, ModelRefusedError, SettingError, StartError
from glyphline.service.jobs import InputError, JobError, OutputError
from glyphline.training.errors import DataError, ExportError, TrainingError


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (errors.AlphabetError("x"), ExitCode.USAGE),
        (errors.BundleError("x"), ExitCode.MODEL),
        (errors.DeviceError("x"), ExitCode.MODEL),
        (errors.ModelNotFoundError("x"), ExitCode.MODEL),
        (errors.OptionsError("beam_width", "x"), ExitCode.USAGE),
        (errors.UndecodableImageError("x"), ExitCode.IMAGES),
        (errors.GlyphlineError("x"), ExitCode.USAGE),
        (InputError("x"), ExitCode.USAGE),
        (OutputError("x"), ExitCode.USAGE),
        (JobError("x"), ExitCode.SYSTEM),
        (DataError("x"), ExitCode.USAGE),
        (TrainingError("x"), ExitCode.USAGE),
        (ExportError("x"), ExitCode.MODEL),
        (InvalidRequestError(grpc.StatusCode.INVALID_ARGUMENT, "x"), ExitCode.USAGE),
        (NotFoundError(grpc.StatusCode.NOT_FOUND, "x"), ExitCode.MODEL),
        (UnavailableError(grpc.StatusCode.UNAVAILABLE, "x"), ExitCode.SERVER),
        (OverloadedError(grpc.StatusCode.RESOURCE_EXHAUSTED, "x"), ExitCode.SERVER),
        (DeadlineExceededError(grpc.StatusCode.DEADLINE_EXCEEDED, "x"), ExitCode.SERVER),
        (StartError("x"), ExitCode.SERVER),
        (SettingError("x"), ExitCode.USAGE),
        (DeviceRefusedError("x"), ExitCode.MODEL),
        (ModelRefusedError(Path("model"), "x"), ExitCode.MODEL),
        (PermissionError(errno.EACCES, "x"), ExitCode.SYSTEM),
        (BrokenPipeError(errno.EPIPE, "x"), ExitCode.PIPE_CLOSED),
        (errors.LabelsError("x"), ExitCode.USAGE),
        (CommandError("x"), ExitCode.USAGE),
        (CommandError("x", ExitCode.SERVER), ExitCode.SERVER),
    ],
)
def test_errors_of_the_domain_have_codes(error: Exception, code: ExitCode) -> None:
    assert exit_code_of(error) is code


@pytest.mark.parametrize("error", [ValueError("x"), AssertionError()])
def test_faults_have_none(error: Exception) -> None:
    assert exit_code_of(error) is None
