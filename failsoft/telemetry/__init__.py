"""What an agent's calls of models were answered, sent to a server by OpenTelemetry's own SDK.

>>> import failsoft
>>> with failsoft.run(node="trip", prompt_version="7"):  # without `init`, nothing is sent
...     pass
"""

from failsoft.telemetry.runs import RunScope, flush, run
from failsoft.telemetry.setup import init

__all__ = ["RunScope", "flush", "init", "run"]
