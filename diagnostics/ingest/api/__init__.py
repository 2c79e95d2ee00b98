"""Endpoints that take telemetry in."""
