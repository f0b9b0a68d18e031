"""Names of devices: `cpu`, and `cuda` with the number of a GPU."""

import re

from glyphline.models.errors import DeviceError

__all__ = ["Device", "gpu_number", "split_devices"]

Device = str
"""Where networks run: `cpu`, or a GPU: `cuda:1` is the second one, `cuda` the first, the same as `cuda:0`."""

_FORM = re.compile(r"cpu|cuda(?::(?P<numbers>\d{1,4}(?:,\d{1,4})*))?")


def split_devices(text: str) -> tuple[Device, ...]:
    """Reads a list of devices.

    Args:
        text: `cpu`, `cuda`, `cuda:1`, or several GPUs, `cuda:0,2`.

    Returns:
        Each by itself, in the order given: `cuda:0` and `cuda:2`.

    Raises:
        DeviceError: If it is none of these, or names a GPU twice.
    """
    match = _FORM.fullmatch(text)
    if match is None:
        raise DeviceError(f"unknown device {text!r}; there is cpu, cuda, cuda:1 and so on, and for servers cuda:0,1")
    numbers = match["numbers"]
    if numbers is None:
        return (text,)
    devices = tuple(f"cuda:{int(number)}" for number in numbers.split(","))
    if len(set(devices)) < len(devices):
        raise DeviceError(f"device {text!r} names a GPU twice; for more workers on each use --workers")
    return devices


def gpu_number(device: Device) -> int | None:
    """Returns which GPU a device is, counted from 0; None for the CPU.

    Raises:
        DeviceError: If it is no device, or several.
    """
    devices = split_devices(device)
    if len(devices) > 1:
        raise DeviceError(f"device {device!r} is several; networks are opened on one, such as {devices[0]!r}")
    return None if devices[0] == "cpu" else int(devices[0].partition(":")[2] or 0)
