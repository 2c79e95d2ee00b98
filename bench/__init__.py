"""Benchmarks; each is a command: `python -m bench.<name>`."""

import os

import django

# Before any module of the product: which tools a project may use stands in its tables.
os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
django.setup()
