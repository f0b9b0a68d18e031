"""Pixels to text: images, bundles, networks in ONNX Runtime, decoding and error rates."""
