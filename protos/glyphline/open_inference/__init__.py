"""The Open Inference Protocol, one package a version."""
