"""instructor under OpenInference: its own spans, and those of the SDK below."""

import instructor_calls
from cell import serve, set_up
from openinference.instrumentation.instructor import InstructorInstrumentor
from openinference.instrumentation.openai import OpenAIInstrumentor

flush = set_up()
OpenAIInstrumentor().instrument()
InstructorInstrumentor().instrument()
serve(instructor_calls.ask, flush)
