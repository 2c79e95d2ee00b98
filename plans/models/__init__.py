"""Rows of the work: runs, their steps, the working store, and tools."""

from plans.models import check, run, tool
