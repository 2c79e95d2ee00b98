"""Endpoints that receive telemetry."""
