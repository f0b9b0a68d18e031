"""Generated stubs of the recognition API."""
