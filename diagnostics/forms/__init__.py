"""Forms of the console that more than one view uses."""
