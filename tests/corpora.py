"""A corpus is one test: every case is tried, and the failed ones are listed."""

from collections.abc import Callable, Iterable
from typing import Any


def each_of(cases: Iterable[Any]) -> Callable[[Callable[..., None]], Callable[[], None]]:
    """Turn the test of one case into a test of all; a tuple is spread over its arguments."""

    def decorate(check: Callable[..., None]) -> Callable[[], None]:
        def test() -> None:
            tried, failed = 0, list[str]()
            for case in cases:
                tried += 1
                try:
                    check(*case) if isinstance(case, tuple) else check(case)
                except Exception as error:  # noqa: BLE001 - whatever it is, it is listed
                    failed.append(f"{case!r:.200}: {type(error).__name__}: {error}")
            assert tried
            assert not failed, f"{len(failed)} of {tried} cases:\n" + "\n".join(failed)

        test.__name__, test.__doc__, test.__module__ = (
            check.__name__, check.__doc__, check.__module__,
        )  # fmt: skip
        return test

    return decorate
