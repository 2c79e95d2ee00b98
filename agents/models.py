"""The models of this app, for Django to find."""

from agents import jobs
from agents.actions import models as actions
from agents.breakers import models as breakers
from agents.fix_patterns import models as fix_patterns
from agents.goals import models as goals
from agents.llm import models as llm
