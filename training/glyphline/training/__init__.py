"""Makes recognisers: data sets, networks, the training loop, evaluation and export."""
