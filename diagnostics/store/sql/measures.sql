    count(*),
    count(*) FILTER (WHERE kind IN ('succeeded', 'degraded')),
    count(*) FILTER (WHERE kind = 'degraded'),
    count(*) FILTER (WHERE kind = 'succeeded' AND attempt = 1),
    count(*) FILTER (WHERE kind = 'succeeded' AND attempt > 1),
    count(*) FILTER (
        WHERE kind = 'degraded' AND status = 'failed'
            AND reason NOT IN (
                'circuit_open', 'provider_failed', 'budget_exhausted', 'timeout'
            )
    ),
    count(*) FILTER (WHERE kind = 'degraded' AND status = 'stubbed'),
    count(*) FILTER (
        WHERE kind = 'degraded' AND status = 'failed' AND reason = 'circuit_open'
    ),
    count(*) FILTER (
        WHERE kind = 'degraded' AND status = 'failed' AND reason = 'provider_failed'
    ),
    count(*) FILTER (
        WHERE kind = 'degraded' AND status = 'failed' AND reason = 'budget_exhausted'
    ),
    count(*) FILTER (
        WHERE kind = 'degraded' AND status = 'failed' AND reason = 'timeout'
    ),
    count(*) FILTER (WHERE kind IN ('succeeded', 'parse_invalid', 'provider_error')),
    count(*) FILTER (WHERE kind = 'parse_invalid'),
    nullif(count(*) FILTER (WHERE invalid_type = 'not_json'), 0),
    nullif(count(*) FILTER (WHERE invalid_type = 'schema_invalid'), 0),
    nullif(count(*) FILTER (WHERE invalid_type = 'empty_output'), 0),
    nullif(count(*) FILTER (WHERE invalid_type = 'truncated'), 0),
    nullif(count(*) FILTER (WHERE invalid_type = 'multiple_objects'), 0),
    nullif(count(*) FILTER (WHERE invalid_type = 'duplicate_key'), 0),
    nullif(count(*) FILTER (WHERE invalid_type = 'refusal'), 0),
    nullif(count(*) FILTER (WHERE invalid_type = 'other'), 0),
    nullif(count(*) FILTER (WHERE call_type = 'timeout'), 0),
    nullif(count(*) FILTER (WHERE call_type = 'provider_error'), 0),
    nullif(count(*) FILTER (WHERE call_type = 'rate_limited'), 0),
    nullif(
        count(*) FILTER (
            WHERE kind = 'provider_error' AND (
                call_type IS NULL
                OR call_type NOT IN ('timeout', 'provider_error', 'rate_limited')
            )
        ), 0
    ),
    nullif(count(*) FILTER (WHERE kind = 'unknown_tool'), 0),
    nullif(count(*) FILTER (WHERE kind = 'succeeded'), 0),
    nullif(count(*) FILTER (WHERE is_call AND attempt > 1), 0),
    nullif(
        count(*) FILTER (WHERE kind = 'degraded' AND reason = node || '_parse_failed'), 0
    ),
    nullif(
        count(*) FILTER (
            WHERE kind = 'degraded' AND reason = node || '_parse_failed' AND attempts > 1
        ), 0
    ),
    nullif(count(*) FILTER (WHERE kind = 'succeeded' AND is_simplified), 0),
    nullif(count(*) FILTER (WHERE is_repaired), 0),
    nullif(count(*) FILTER (WHERE is_coerced), 0),
    nullif(count(*) FILTER (WHERE is_call AND attempt = 2), 0),
    nullif(count(*) FILTER (WHERE is_call AND attempt = 3), 0),
    nullif(count(*) FILTER (WHERE is_call AND attempt = 4), 0),
    nullif(count(*) FILTER (WHERE is_call AND attempt > 4), 0),
    nullif(count(*) FILTER (WHERE kind = 'succeeded' AND attempt = 2), 0),
    nullif(count(*) FILTER (WHERE kind = 'succeeded' AND attempt = 3), 0),
    nullif(count(*) FILTER (WHERE kind = 'succeeded' AND attempt = 4), 0),
    nullif(count(*) FILTER (WHERE kind = 'succeeded' AND attempt > 4), 0),
    nullif(count(latency_ms) FILTER (WHERE is_call), 0),
    nullif(count(latency_ms) FILTER (WHERE kind = 'parse_invalid'), 0),
    nullif(count(*) FILTER (WHERE is_call AND latency_ms <= 100), 0),
    nullif(count(*) FILTER (WHERE is_call AND latency_ms > 100 AND latency_ms <= 160), 0),
    nullif(count(*) FILTER (WHERE is_call AND latency_ms > 160 AND latency_ms <= 256), 0),
    nullif(count(*) FILTER (WHERE is_call AND latency_ms > 256 AND latency_ms <= 410), 0),
    nullif(count(*) FILTER (WHERE is_call AND latency_ms > 410 AND latency_ms <= 655), 0),
    nullif(count(*) FILTER (WHERE is_call AND latency_ms > 655 AND latency_ms <= 1049), 0),
    nullif(count(*) FILTER (WHERE is_call AND latency_ms > 1049 AND latency_ms <= 1678), 0),
    nullif(count(*) FILTER (WHERE is_call AND latency_ms > 1678 AND latency_ms <= 2684), 0),
    nullif(count(*) FILTER (WHERE is_call AND latency_ms > 2684 AND latency_ms <= 4295), 0),
    nullif(count(*) FILTER (WHERE is_call AND latency_ms > 4295 AND latency_ms <= 6872), 0),
    nullif(count(*) FILTER (WHERE is_call AND latency_ms > 6872 AND latency_ms <= 10995), 0),
    nullif(count(*) FILTER (WHERE is_call AND latency_ms > 10995 AND latency_ms <= 17592), 0),
    nullif(count(*) FILTER (WHERE is_call AND latency_ms > 17592 AND latency_ms <= 28147), 0),
    nullif(count(*) FILTER (WHERE is_call AND latency_ms > 28147 AND latency_ms <= 45036), 0),
    nullif(count(*) FILTER (WHERE is_call AND latency_ms > 45036 AND latency_ms <= 72058), 0),
    nullif(count(*) FILTER (WHERE is_call AND latency_ms > 72058), 0),
    <<sums>>
