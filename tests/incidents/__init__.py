"""Random weeks that end with a known incident: what verdicts are measured with."""
