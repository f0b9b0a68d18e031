"""Names of devices: one, or several GPUs, and nothing else."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from glyphline.models.devices import gpu_number, split_devices
from glyphline.models.errors import DeviceError


@pytest.mark.parametrize(
    ("text", "devices", "number"),
    [("cpu", ("cpu",), None), ("cuda", ("cuda",), 0), ("cuda:0", ("cuda:0",), 0), ("cuda:12", ("cuda:12",), 12)],
)
def test_a_device(text: str, devices: tuple[str, ...], number: int | None) -> None:
    assert split_devices(text) == devices
    assert gpu_number(text) == number


@given(st.lists(st.integers(0, 99), min_size=2, max_size=9, unique=True))
def test_several_gpus_are_told_apart(numbers: list[int]) -> None:
    devices = split_devices("cuda:" + ",".join(map(str, numbers)))
    assert [gpu_number(device) for device in devices] == numbers


@pytest.mark.parametrize(
    "text", ["", "CUDA", "gpu", "cpu:0", "cuda:", "cuda:-1", "cuda:0,", "cuda:1 ", "cuda:0;1", "1"]
)
def test_what_is_no_device(text: str) -> None:
    with pytest.raises(DeviceError, match="there is cpu, cuda"):
        split_devices(text)


def test_a_gpu_has_one_place_in_a_list() -> None:
    with pytest.raises(DeviceError, match="twice; for more workers on each use --workers"):
        split_devices("cuda:1,0,01")


def test_networks_are_opened_on_one() -> None:
    with pytest.raises(DeviceError, match="'cuda:0,1' is several"):
        gpu_number("cuda:0,1")
