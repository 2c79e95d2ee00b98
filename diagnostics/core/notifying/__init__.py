"""Who is told of an incident, when, how often and in which words: rules without a clock."""
