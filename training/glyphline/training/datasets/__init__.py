"""Labelled strips for training and evaluation: read from disk, composed from single characters, or rendered.

Nothing here imports torch: the same data sets feed the training loop and `glyphline evaluate`.
"""
