"""Delete the recorded data of a run or a project."""
