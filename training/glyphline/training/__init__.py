"""Makes recognisers: data sets, networks, the training loop, evaluation and export."""

import glyphline.models  # noqa: F401  (before anything here imports ONNX Runtime: it turns its telemetry off)
