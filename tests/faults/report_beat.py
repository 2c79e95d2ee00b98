"""A beat with a clock of its own, for the fault test of reports: `report_beat.py NAME SKEW`.

It looks at the simulated time that the test names, and says which it has worked through.
"""

import os
import sys
import time
from pathlib import Path

import django
from django.db import connection

from diagnostics import clock

django.setup()

from diagnostics.reports.sending import send_waiting  # noqa: E402
from diagnostics.reports.subscriptions import due  # noqa: E402


def shift(seconds: float) -> None:
    with connection.cursor() as cursor:
        cursor.execute("SET failsoft.clock_shift = %s", [f"{seconds} seconds"])


def main() -> None:
    folder, name, skew = (Path(os.environ["BEAT_FOLDER"]), sys.argv[1], float(sys.argv[2]))
    while True:
        told = (folder / "now").read_text()
        shift(float(told) + skew)
        due(clock.now())
        send_waiting()
        written = folder / f"{name}.new"
        written.write_text(told)
        written.replace(folder / name)
        time.sleep(0.01)


if __name__ == "__main__":
    main()
