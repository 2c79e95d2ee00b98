true
kind = 'degraded' OR kind = 'succeeded' AND attempt IS NOT NULL
kind = 'degraded'
kind = 'succeeded' AND attempt = 1 AND unchecked IS NULL
kind = 'succeeded' AND attempt > 1 AND unchecked IS NULL
kind = 'degraded' AND status = 'failed'
    AND reason NOT IN ('circuit_open', 'provider_failed', 'budget_exhausted', 'timeout')
kind = 'degraded' AND status = 'stubbed'
kind = 'degraded' AND status = 'failed' AND reason = 'circuit_open'
kind = 'degraded' AND status = 'failed' AND reason = 'provider_failed'
kind = 'degraded' AND status = 'failed' AND reason = 'budget_exhausted'
kind = 'degraded' AND status = 'failed' AND reason = 'timeout'
is_call
kind = 'parse_invalid'
invalid_type = 'not_json'
invalid_type = 'schema_invalid'
invalid_type = 'empty_output'
invalid_type = 'truncated'
invalid_type = 'multiple_objects'
invalid_type = 'duplicate_key'
invalid_type = 'refusal'
invalid_type = 'other'
call_type = 'timeout'
call_type = 'provider_error'
call_type = 'rate_limited'
kind = 'provider_error' AND call_type IN ('timeout', 'provider_error', 'rate_limited') IS NOT true
kind = 'unknown_tool'
kind = 'succeeded'
is_call AND attempt > 1
kind = 'degraded' AND reason = node || '_parse_failed'
kind = 'degraded' AND reason = node || '_parse_failed' AND attempts > 1
kind = 'succeeded' AND is_simplified
is_repaired
is_coerced
is_call AND attempt = 2 AND unchecked IS NULL
is_call AND attempt = 3 AND unchecked IS NULL
is_call AND attempt = 4 AND unchecked IS NULL
is_call AND attempt > 4 AND unchecked IS NULL
kind = 'succeeded' AND attempt = 2 AND unchecked IS NULL
kind = 'succeeded' AND attempt = 3 AND unchecked IS NULL
kind = 'succeeded' AND attempt = 4 AND unchecked IS NULL
kind = 'succeeded' AND attempt > 4 AND unchecked IS NULL
is_call AND latency_ms IS NOT NULL
kind = 'parse_invalid' AND latency_ms IS NOT NULL
unchecked = 'no_schema'
unchecked = 'no_answer'
unchecked = 'over_budget'
kind = 'succeeded' AND attempt = 1 AND is_altered
kind = 'cancelled'
