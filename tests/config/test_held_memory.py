"""Bodies in memory: who holds the most is refused first."""

from config.held_bodies import REQUEST_BYTES, BodyMemory, HeldBody, Holder

LIMIT = 100 * REQUEST_BYTES


class Held:
    """Bodies in a memory, and the names of the refused ones."""

    def __init__(self) -> None:
        self.memory = BodyMemory(LIMIT)
        self.refused: list[str] = []

    def hold(self, name: str, group: str, member: str, requests: int) -> HeldBody:
        """Hold a body as large as that many empty requests."""
        body = HeldBody(Holder(group, member), lambda: self.refused.append(name))
        self.memory.add(body)
        self.memory.grow(body, (requests - 1) * REQUEST_BYTES)
        return body


def test_bodies_that_fit_are_all_held() -> None:
    held = Held()
    held.hold("a", "one", "key", 60)
    held.hold("b", "two", "key", 40)
    assert (held.refused, held.memory.size) == ([], LIMIT)


def test_the_largest_body_of_the_heaviest_group_is_refused_not_the_one_that_came_last() -> None:
    held = Held()
    held.hold("largest of all", "small", "key", 40)
    held.hold("first", "big", "key", 25)
    held.hold("second", "big", "key", 30)
    held.hold("last", "tiny", "key", 10)
    assert held.refused == ["second"]


def test_within_a_group_the_member_that_holds_most_is_refused() -> None:
    held = Held()
    for name in ("a", "b", "c"):
        held.hold(name, "project", "greedy", 25)
    held.hold("single", "project", "modest", 30)
    assert held.refused == ["a"]


def test_a_body_that_a_thread_works_on_is_counted_and_not_refused() -> None:
    held = Held()
    held.hold("working", "one", "key", 90).refuse = None
    held.hold("waiting", "two", "key", 20)
    assert (held.refused, held.memory.size) == (["waiting"], 90 * REQUEST_BYTES)


def test_a_refused_body_is_not_counted_again() -> None:
    held = Held()
    body = held.hold("too large", "one", "key", 101)
    held.memory.grow(body, 10)
    held.memory.remove(body)
    assert (held.refused, held.memory.size) == (["too large"], 0)


def test_requests_without_a_body_are_bounded_too() -> None:
    held = Held()
    for number in range(101):
        held.hold(str(number), "one", str(number), 1)
    assert len(held.refused) == 1
