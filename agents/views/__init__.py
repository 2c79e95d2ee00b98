"""Console pages about goals: the list, the timeline, submitting, answering."""
