"""The training loop: `train` makes a run, `load_network` takes the network out of it."""

from glyphline.training.loop.folder import load_network
from glyphline.training.loop.run import train

__all__ = ["load_network", "train"]
