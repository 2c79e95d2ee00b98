"""Pages and endpoints: Now, models, compare, prompts, live, exports."""
