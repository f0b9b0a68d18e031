"""Serves recognisers over gRPC, and the client for it."""
