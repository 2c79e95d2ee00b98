"""Whether two values are the same JSON: 1, 1.0 and true are three different ones."""


def same(one: object, other: object) -> bool:
    """Compare two values read from JSON, of depth 64 at most."""
    if type(one) is not type(other):
        return False
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(same(one[key], other[key]) for key in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(same, one, other))
    return one == other
