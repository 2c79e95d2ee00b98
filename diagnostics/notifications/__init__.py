"""Telling: who is told of an incident, through which channel, once."""
