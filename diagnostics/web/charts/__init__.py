"""Geometry of the console's drawings: numbers in, coordinates and a sentence out."""
