kind IN ('succeeded', 'parse_invalid', 'provider_error') AS is_call,
CASE kind WHEN 'parse_invalid' THEN parse_error_type END AS invalid_type,
CASE kind WHEN 'provider_error' THEN call_error_type END AS call_type
