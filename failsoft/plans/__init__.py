"""The plan execution contract: validate, resolve, execute.

>>> from failsoft.plans import Seams, execute, validate_payload
>>> plan = {"goal": "greet", "steps": [{"step_id": "step_1", "title": "Greet", "tool": "echo"}]}
>>> validate_payload(plan)
[]
>>> step, meta = execute(plan, Seams(call_tool=lambda name, args, context: "hi"))
>>> step["output"], meta["task_status"]
('hi', 'COMPLETED')
"""

from failsoft.plans.contract import CONTRACT_VERSION, PlanPayload
from failsoft.plans.execution import Seams, execute
from failsoft.plans.results import validate_results
from failsoft.plans.validation import validate_payload
from failsoft.plans.violations import Violation

__all__ = [
    "CONTRACT_VERSION",
    "PlanPayload",
    "Seams",
    "Violation",
    "execute",
    "validate_payload",
    "validate_results",
]
