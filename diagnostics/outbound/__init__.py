"""Outbound traffic: mail, pinned HTTP, address checks, sealed credentials."""
