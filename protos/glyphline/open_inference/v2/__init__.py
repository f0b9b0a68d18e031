"""Generated stubs of the Open Inference Protocol. They cannot share a process with those of tritonclient."""
