"""Numbers for people, and paths for C++."""

from __future__ import annotations

import os
from typing import Any, Union

StrPath = Union[str, "os.PathLike[str]"]


def step_text(us: float) -> str:
    """A time given in microseconds, in the unit that reads best."""
    if us >= 1e6:
        return f"{us / 1e6:.3g} s"
    return f"{us / 1e3:.3g} ms" if us >= 1e3 else f"{us:.3g} us"


def bytes_text(count: float) -> str:
    """A number of bytes in the binary unit that reads best."""
    for unit in ("bytes", "KiB", "MiB", "GiB"):
        if count < 1024:
            return f"{count:.0f} {unit}" if unit == "bytes" else f"{count:.1f} {unit}"
        count /= 1024
    return f"{count:.1f} TiB"


def path_bytes(path: StrPath, what: str) -> bytes:
    """The bytes of a path. Errors name `what`."""
    from .errors import InputError

    try:
        name = os.fsencode(path)
    except TypeError:
        raise InputError(f"{what}: a path is expected, not {type(path).__name__}") from None
    if not name:
        raise InputError(f"{what}: the path is empty")
    if b"\0" in name:
        raise InputError(f"{what}: a path has no null character")
    return name


def whole_number(name: str, value: Any, least: int = 0, most: int = 2**63 - 1) -> int:
    """`value` as an int: Python's, NumPy's, but no truth value. Errors name it."""
    from .errors import InputError

    if isinstance(value, bool) or not hasattr(value, "__index__"):
        raise InputError(f"{name}={value!r}: a whole number is expected")
    number: int = value.__index__()
    if not least <= number <= most:
        raise InputError(f"{name}={number}: a whole number from {least} to {most} is expected")
    return number
