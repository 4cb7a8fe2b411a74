"""torch.nn.Module to an ONNX file: what ``isomer.load`` does of a module.

torch is imported only if the caller's program has done so: whoever has a module has it.
"""

from __future__ import annotations

import contextlib
import logging
import os
import shutil
import sys
import tempfile
import threading
import warnings
import weakref
from dataclasses import dataclass
from typing import Any, Iterator, Optional, Sequence

from .errors import InputError


@dataclass
class Export:
    """A file that a module was exported to.

    Attributes:
        path: of the file.
        module_name: what messages call the module.
        is_temporary: the file goes with this object.
    """

    path: str
    module_name: str
    is_temporary: bool


def is_module(source: Any) -> bool:
    """Whether it is a ``torch.nn.Module``."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(source, torch.nn.Module)


@contextlib.contextmanager
def _evaluating(module: Any) -> Iterator[None]:
    """The module in evaluation mode, and then each part of it as it was."""
    were_training = [part for part in module.modules() if part.training]
    module.eval()
    try:
        yield
    finally:
        for part in were_training:
            part.training = True


# What exporters, logs and warnings are set to is the whole process's.
_one_at_a_time = threading.Lock()


@contextlib.contextmanager
def _quietly() -> Iterator[None]:
    """Without what exporters say of their own progress and deprecation, or of what failed, which is
    raised besides."""
    level = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(level)


def _export_with(name: str, module: Any, examples: tuple[Any, ...],
                 input_names: Optional[list[str]], path: str) -> None:
    import torch

    options: dict[str, Any] = {"input_names": input_names}
    if name == "dynamo":
        # Weights go to a file beside it, from which Isomer reads those that it needs.
        # Optimised, what is computed from parameters alone would be folded, and be trained instead.
        options.update(dynamo=True, external_data=True, verbose=False, optimize=False)
    else:
        options.update(dynamo=False, opset_version=17)
        if input_names is None:
            options["input_names"] = [f"input_{i}" for i in range(len(examples))]
    with _one_at_a_time, _evaluating(module), _quietly(), torch.no_grad():
        torch.onnx.export(module, examples, path, **options)


def _one_line(error: BaseException) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return f"{type(error).__name__}: {lines[0]}" if lines else type(error).__name__


def _examples_of(example_inputs: Any) -> tuple[Any, ...]:
    import torch

    if isinstance(example_inputs, torch.Tensor):
        return (example_inputs,)
    if isinstance(example_inputs, (tuple, list)) and example_inputs:
        for i, example in enumerate(example_inputs):
            if not isinstance(example, torch.Tensor):
                raise InputError(f"example_inputs: number {i} is a {type(example).__name__}, and a "
                                 "torch.Tensor is expected")
        return tuple(example_inputs)
    raise InputError("a torch.nn.Module needs example_inputs: a tensor, or a tuple of tensors, to "
                     "call it with")


def export(module: Any, example_inputs: Any, input_names: Optional[Sequence[str]], exporter: str,
           save_to: Optional[bytes]) -> Export:
    """Exports the module with the exporter, or with the first that can ("auto").

    Raises:
        InputError: what was given is no good; or no exporter can, with the line of each.
    """
    examples = _examples_of(example_inputs)
    names = None if input_names is None else list(input_names)
    if names is not None and len(names) != len(examples):
        raise InputError(f"input_names: there are {len(names)} names of {len(examples)} inputs")
    if exporter not in ("auto", "dynamo", "torchscript"):
        raise InputError(f"exporter={exporter}: there are auto, dynamo and torchscript")
    module_name = type(module).__name__
    if save_to is None:
        folder = tempfile.mkdtemp(prefix="isomer_")
        path = os.path.join(folder, module_name + ".onnx")
    else:
        path = os.fsdecode(save_to)
        folder = os.path.dirname(path) or "."
        if not os.path.isdir(folder):
            raise InputError(f"save_to: there is no folder {folder}")
    result = Export(path, module_name, is_temporary=save_to is None)
    if save_to is None:
        weakref.finalize(result, shutil.rmtree, folder, ignore_errors=True)
    reasons = []
    for name in ("dynamo", "torchscript") if exporter == "auto" else (exporter,):
        try:
            _export_with(name, module, examples, names, path)
            return result
        except Exception as error:  # pylint: disable=broad-except
            reasons.append(f"{name}: {_one_line(error)}")
    raise InputError(f"{module_name} cannot be exported: " + "; ".join(reasons))
