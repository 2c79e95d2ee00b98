sum(input_tokens) FILTER (WHERE is_call),
    sum(output_tokens) FILTER (WHERE is_call),
    sum(input_tokens) FILTER (WHERE is_call AND attempt > 1),
    sum(output_tokens) FILTER (WHERE is_call AND attempt > 1),
    sum(input_tokens) FILTER (WHERE kind = 'parse_invalid'),
    sum(output_tokens) FILTER (WHERE kind = 'parse_invalid'),
    sum(latency_ms) FILTER (WHERE is_call),
    sum(latency_ms) FILTER (WHERE is_call AND attempt > 1),
    sum(latency_ms) FILTER (WHERE kind = 'parse_invalid')
