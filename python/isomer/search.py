"""``isomer.optimize``: the search, with the options of ``isomer-optimize`` as keywords."""

from __future__ import annotations

import os
from typing import Any, Optional, Sequence, Union

from . import _isomer
from .background import run
from .errors import DoesNotFit, InputError
from .machine import Machine, as_machine
from .model import Model, issue_notes, load
from .plan import Plan
from .progress import ProgressCallback, Reporter
from .text import StrPath, path_bytes

# Options that are files or folders.
_PATHS = ("constraints", "compare", "rules", "profile", "cache_dir", "fp8_errors",
          "expert_loads")
_TABLE = {name: (kind, default, text) for name, kind, default, text in _isomer.search_options()}


def optimize(model: Union[Model, StrPath], machine: Union[Machine, StrPath], *,
             mode: str = "training",
             loss_alone: bool = False,
             loss: str = "auto",
             carry: Sequence[str] = (),
             precision: str = "float32",
             fp8_scaling: str = "tensor",
             fp8_keep: Sequence[str] = ("ends",),
             fp8_errors: StrPath = "",
             fp8_error: float = 0.0,
             attention: str = "flash",
             expert_imbalance: float = 0.0,
             expert_loads: StrPath = "",
             gradient_precision: str = "float32",
             state_precision: str = "float32",
             optimizer: str = "sgd",
             clip_norm: bool = False,
             average: bool = False,
             update: str = "auto",
             bucket_bytes: int = -1,
             search: str = "hierarchical",
             constraints: StrPath = "",
             plan: str = "",
             sequence_parallel: bool = True,
             tensor: int = 1,
             context: int = 1,
             context_exchange: str = "auto",
             context_order: str = "auto",
             expert: int = 1,
             pipeline: str = "1",
             schedule: str = "1f1b",
             micro_batch_size: int = 0,
             recompute: str = "none",
             offload: str = "none",
             compare: StrPath = "",
             steps_between_flushes: int = 1,
             whole_machine: bool = False,
             without: Sequence[str] = (),
             policy: str = "",
             bound_cuts: int = 0,
             rules: StrPath = "",
             profile: StrPath = "",
             profile_of_another_device: bool = False,
             budget: int = 0,
             alpha: float = 1.05,
             threads: int = 0,
             time_limit: float = 0.0,
             split: bool = True,
             cache: bool = True,
             cache_dir: StrPath = "",
             seed: int = 1,
             progress: Union[bool, ProgressCallback, None] = None) -> Plan:
    """Finds the fastest plan that is proved equal to the model and fits into the machine's memory.

    The GIL is released; several searches may run in threads of their own. Ctrl-C ends the search
    with the best plan so far (``Plan.stop_reason`` is "interrupted"), a second one raises
    KeyboardInterrupt.

    Args:
        model: of ``isomer.load``, or what that takes.
        machine: or what ``Machine`` takes.
        progress: None: a line on a terminal or in a notebook; False: nothing; a function: it is
            called with an ``isomer.Progress`` about ten times a second, in this thread. What it
            raises ends the search and is raised here.

    Returns:
        The plan, with times and memory (``Plan.is_priced``).

    Raises:
        InputError: the model, the machine or an option is no good; names it.
        DoesNotFit: nothing fits; says what takes the memory and how many nodes would do. Its
            attribute ``plan`` is the plan that needs least.
    """
    values = dict(locals())
    given_model, given_machine = values.pop("model"), values.pop("machine")
    tell_of = values.pop("progress")
    if tell_of is not None and not isinstance(tell_of, bool) and not callable(tell_of):
        raise InputError(f"progress={tell_of!r}: a function, True or False is expected")
    options = _stated(values)
    target = as_machine(given_machine)
    network = given_model if isinstance(given_model, Model) else load(given_model)
    watch = _isomer.SearchWatch()
    limit = options.get("time_limit", 0)
    reporter = Reporter(watch, limit if isinstance(limit, (int, float)) else 0, tell_of)
    try:
        handle = run(
            lambda: _isomer.optimize(network._handle, target._handle, options, watch),
            end=watch.end, tell=reporter.tell)
    finally:
        reporter.end()
    found = Plan(handle, network._export)
    issue_notes(found.notes)
    if not found.fits:
        raise DoesNotFit(handle.misfit, found)
    return found


def _stated(values: dict[str, Any]) -> dict[str, Any]:
    """The options that are not as they are without: what does not apply of these is refused."""
    options = {}
    for name, value in values.items():
        kind, default, _ = _TABLE[name]
        if kind == "list[str]":
            value = _names(name, value)
        elif name in _PATHS and isinstance(value, (str, os.PathLike)):
            value = path_bytes(value, name) if value else ""
        elif kind == "str" and isinstance(value, int) and not isinstance(value, bool):
            value = str(value)  # pipeline=4
        if type(value) is not type(default) or value != default:
            options[name] = _plain(value)
    return options


def _names(option: str, value: Any) -> list[str]:
    if isinstance(value, str):
        return value.split(",") if value else []
    try:
        return list(value)
    except TypeError:
        raise InputError(f"{option}={value!r}: a list of names is expected") from None


def _plain(value: Any) -> Any:
    """Numbers of NumPy as Python's own."""
    return value.item() if hasattr(value, "item") and not isinstance(value, str) else value


def _document() -> None:
    """The options' part of the docstring, from the one list of them."""
    lines = ["", "    Options, those of ``isomer-optimize`` (docs/search.md):", ""]
    for name, (_, default, text) in _TABLE.items():
        lines.append(f"        {name}: {text.replace('--', '')} ({default!r})")
    optimize.__doc__ = (optimize.__doc__ or "").rstrip() + "\n" + "\n".join(lines) + "\n"


_document()


def search_options() -> dict[str, tuple[str, Any, str]]:
    """The options of ``optimize``: (type, default, help) by name."""
    return dict(_TABLE)


def known_names(extra: Optional[Sequence[str]] = None) -> frozenset[str]:
    """Names that are keywords somewhere in this package, for messages."""
    return frozenset(_TABLE) | frozenset(extra or ())
