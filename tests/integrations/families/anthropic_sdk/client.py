"""The Anthropic SDK traces itself where OpenTelemetry is installed."""

import anthropic_calls
from cell import serve, set_up

flush = set_up()
serve(anthropic_calls.ask, flush)
