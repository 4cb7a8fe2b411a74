"""What goes wrong, one line each: the line that the programs print, with Python's names of options.

    Error
    +-- InputError   (also a ValueError)  what was given is no good: it names file, tensor or option
    +-- DoesNotFit                        the answer is no: too large for these devices, or this
                                          computer
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Optional

if TYPE_CHECKING:
    from .plan import Plan

# Flags of the programs and what the keyword is called here; of other flags the name is the same.
_RENAMED = {"dim": "dims"}
_FLAG = re.compile(r"(?<![\w-])--(?:no)?([a-z][a-z_]*)")
# Flags of the programs that are no keywords here: --verbose, --out.
_known: frozenset[str] = frozenset()


def _know(names: frozenset[str]) -> None:
    global _known
    _known = names


def in_python_words(line: str) -> str:
    """The line of a program with ``name`` for ``--name``, where that is a keyword here."""

    def keyword(match: re.Match[str]) -> str:
        name = _RENAMED.get(match[1], match[1])
        return name if name in _known else match[0]

    return _FLAG.sub(keyword, line.replace("--operators=FILE", "isomer.declare_operators(FILE)"))


class Error(Exception):
    """The base of this package's errors; itself what only a bug, or a broken device, can cause."""

    def __init__(self, line: str) -> None:
        super().__init__(in_python_words(line))


class InputError(Error, ValueError):
    """What was given is no good. The line names the file, the tensor or the option."""


class DoesNotFit(Error):
    """No plan fits into memory, or a run does not fit into that of this computer.

    Attributes:
        plan: the plan that needs the least memory, for a look at what takes it; None where there is
            none.
    """

    plan: Optional["Plan"]

    def __init__(self, line: str, plan: Optional["Plan"] = None) -> None:
        super().__init__(line)
        self.plan = plan


class Note(UserWarning):
    """What a user should see although nothing is wrong: the loss that was taken to be meant."""
