"""What a page or an answer is narrowed to: filters, the query language, time ranges."""
