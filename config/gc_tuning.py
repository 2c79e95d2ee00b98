"""What Python's garbage collector is spared."""

import gc

# So many new objects, and the collector looks whether they are garbage.
_NEW_OBJECTS = 50_000


def set_aside_what_stays() -> None:
    """Leave out of every later collection what is loaded by now.

    A process of ours loads some 200,000 objects that stay until its end: to go through
    them takes 140 ms, time and again, in the middle of somebody's page. And to look for
    garbage after every 700 objects, as is Python's habit, takes a fifth of a run's time.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(_NEW_OBJECTS, 10, 10)
