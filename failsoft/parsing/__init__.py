"""Recovery of JSON from model output: one reading with recorded repairs, or a located refusal.

>>> from failsoft.parsing import recover
>>> answer = recover("{'steps': [1, 2],}")
>>> answer.value, [repair.kind for repair in answer.repairs]
({'steps': [1, 2]}, ['single_quotes', 'trailing_comma'])
>>> recover('{"a": 1').error_type
<ParseErrorType.TRUNCATED: 'truncated'>
"""

from failsoft.parsing.answers import Recovered, RefusedAnswer, TextPlaces, recover, trace

__all__ = ["Recovered", "RefusedAnswer", "TextPlaces", "recover", "trace"]
