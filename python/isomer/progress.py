"""How far a search is: what a callback is told, and the line that is shown without one."""

from __future__ import annotations

import math
import sys
import time
from dataclasses import dataclass
from typing import Any, Callable, Optional, Protocol, Union

from .text import step_text

#: Seconds before the first line: what is done sooner says nothing.
QUIET_SECONDS = 1.0


@dataclass(frozen=True)
class Progress:
    """A search as it is now.

    Attributes:
        seconds: since it began.
        time_limit: in seconds; 0: none.
        plans: that were simulated so far.
        best_step_us: of those that fit, the fastest step in microseconds; None: none fits yet.
    """

    seconds: float
    time_limit: float
    plans: int
    best_step_us: Optional[float]

    def __str__(self) -> str:
        limit = f" of {self.time_limit:.0f}" if self.time_limit > 0 else ""
        best = "" if self.best_step_us is None else f", the best takes {step_text(self.best_step_us)}"
        return f"search: {self.seconds:.0f}{limit} s, {self.plans} plans{best}"


ProgressCallback = Callable[[Progress], object]


class _Watch(Protocol):
    @property
    def plans(self) -> int: ...
    @property
    def best_step_us(self) -> float: ...


class _Display(Protocol):
    def show(self, line: str) -> None: ...
    def clear(self) -> None: ...


class _Terminal:
    def show(self, line: str) -> None:
        # "\r" and "erase to the end of the line": the line is drawn over itself.
        sys.stderr.write(f"\r{line}\x1b[K")
        sys.stderr.flush()

    def clear(self) -> None:
        self.show("")


class _Notebook:
    """A line of a cell's output, which is replaced."""

    def __init__(self, display: Callable[..., Any]) -> None:
        self._display = display
        self._handle: Any = None

    def show(self, line: str) -> None:
        data = {"text/plain": line}
        if self._handle is None:
            self._handle = self._display(data, raw=True, display_id=True)
        else:
            self._handle.update(data, raw=True)

    def clear(self) -> None:
        if self._handle is not None:
            self._handle.update({"text/plain": ""}, raw=True)


def _display_here() -> Optional[_Display]:
    """Where a line may be drawn over itself, if anywhere: not in a log."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    if shell is not None and getattr(shell, "kernel", None) is not None:
        from IPython.display import display  # type: ignore[import-not-found, unused-ignore]

        return _Notebook(display)
    stderr = sys.stderr
    if stderr is not None and stderr.isatty():
        return _Terminal()
    return None


class Reporter:
    """Says how far a search is, to a callback or on a line, whenever it is asked to."""

    def __init__(self, watch: _Watch, time_limit: float,
                 progress: Union[bool, ProgressCallback, None]) -> None:
        self._watch = watch
        self._time_limit = time_limit
        self._start = time.monotonic()
        self._callback = progress if callable(progress) else None
        self._display = None if callable(progress) or progress is False else _display_here()
        self._shown = False

    def now(self) -> Progress:
        best = self._watch.best_step_us
        return Progress(time.monotonic() - self._start, self._time_limit, self._watch.plans,
                        best if math.isfinite(best) else None)

    def tell(self) -> None:
        state = self.now()
        if self._callback is not None:
            self._callback(state)
        elif self._display is not None and state.seconds >= QUIET_SECONDS:
            self._display.show(str(state))
            self._shown = True

    def end(self) -> None:
        if self._display is not None and self._shown:
            self._display.clear()
