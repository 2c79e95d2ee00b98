"""The noise of hours that a series expects: its own, and that of its project."""

from collections.abc import Sequence
from math import exp

import pytest

from diagnostics.analysis.detectors.noise import NO_NOISE, Noise, remember_noise, weigh_noise

USUAL_HOUR, BAD_HOUR = (0.0, -0.1, -0.8, -2.0, -4.0), (-9.0, -4.0, 0.0, -0.2, -1.0)
RESTLESS, CALM = (
    (USUAL_HOUR, BAD_HOUR),
    (USUAL_HOUR, USUAL_HOUR, USUAL_HOUR, (-0.2, 0, -0.1, -1, -2)),
)


def known(hours: Sequence[Noise], times: int) -> Noise:
    noise: Noise = NO_NOISE
    for hour in (*hours,) * times:
        noise = remember_noise(noise, hour)
    return noise


@pytest.mark.parametrize("times", [25, 250, 2_500])
def test_a_new_series_expects_the_noise_of_its_project_however_much_of_that_is_known(
    times: int,
) -> None:
    restless = [exp(share) for share in weigh_noise(NO_NOISE, known(RESTLESS, times), ())]
    calm = [exp(share) for share in weigh_noise(NO_NOISE, known(CALM, times), ())]
    assert max(restless) == restless[2] > 0.6
    assert max(calm) == calm[0] > 0.9


def test_the_hours_of_a_series_outweigh_those_of_its_project() -> None:
    own = known(RESTLESS, 50)
    project = [one + other for one, other in zip(own, known(CALM, 2_500), strict=True)]
    shares = [exp(share) for share in weigh_noise(own, project, ())]
    assert max(shares) == shares[2] > 0.9
