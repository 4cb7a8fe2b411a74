"""Work of C++ in a thread beside the caller's, which listens to Ctrl-C and tells of progress."""

from __future__ import annotations

import threading
from typing import Callable, Optional, TypeVar

T = TypeVar("T")

#: Seconds between two looks: how long Ctrl-C may take to be noticed, and how often progress is told.
PERIOD = 0.1


def run(work: Callable[[], T], *, end: Optional[Callable[[], None]] = None,
        tell: Optional[Callable[[], None]] = None) -> T:
    """The result of `work`, which is to release the GIL.

    `end` asks the work to end early, with what it has: what the first Ctrl-C does. The second, and
    without `end` the first, raises KeyboardInterrupt; nothing can stop the work then, which goes on
    to its end in its thread, and its result is dropped.
    """
    results: list[T] = []
    errors: list[BaseException] = []
    # Not Thread.join, which takes the thread to be over when Ctrl-C interrupts it (Python 3.11).
    is_over = threading.Event()

    def target() -> None:
        try:
            results.append(work())
        except BaseException as error:  # pylint: disable=broad-except
            errors.append(error)
        finally:
            is_over.set()

    threading.Thread(target=target, name="isomer").start()
    while not is_over.is_set():
        try:
            if not is_over.wait(PERIOD) and tell is not None:
                tell()
        except KeyboardInterrupt:
            if end is None:
                raise
            end()
            end = None
        except BaseException:
            if end is not None:
                end()
            raise
    if errors:
        raise errors[0]
    return results[0]
