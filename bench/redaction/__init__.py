"""Made-up documents with and without secrets, to measure what a redactor finds and leaves."""
