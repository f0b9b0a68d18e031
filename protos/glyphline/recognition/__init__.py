"""The recognition API, one package a version."""
