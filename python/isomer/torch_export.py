"""torch.nn.Module to an ONNX file: what ``isomer.load`` does of a module.

torch is imported only if the caller's program has done so: whoever has a module has it.
"""

from __future__ import annotations

import contextlib
import inspect
import logging
import os
import re
import shutil
import sys
import tempfile
import threading
import warnings
import weakref
from dataclasses import dataclass
from typing import Any, Iterator, Mapping, Optional, Sequence

from .errors import InputError


@dataclass
class Export:
    """A file that a module was exported to.

    Attributes:
        path: of the file.
        module_name: what messages call the module.
        is_temporary: the file goes with this object.
        notes: in what the file is not the module, though it computes the same.
    """

    path: str
    module_name: str
    is_temporary: bool
    notes: tuple[str, ...] = ()


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


@contextlib.contextmanager
def _without_output() -> Iterator[None]:
    """Nothing goes to the process's stdout and stderr: where it fails, the older exporter writes the
    whole network there, past Python."""
    sys.stdout.flush()
    sys.stderr.flush()
    kept = [os.dup(1), os.dup(2)]
    nowhere = os.open(os.devnull, os.O_WRONLY)
    try:
        for number in (1, 2):
            os.dup2(nowhere, number)
        yield
    finally:
        for number, before in zip((1, 2), kept):
            os.dup2(before, number)
            os.close(before)
        os.close(nowhere)


def _export_with(name: str, module: Any, examples: tuple[Any, ...], by_name: dict[str, Any],
                 input_names: Optional[list[str]], path: str) -> None:
    import torch

    options: dict[str, Any] = {"input_names": input_names}
    if name == "dynamo":
        # Weights go to a file beside it, from which Isomer reads those that it needs.
        # Optimised, what is computed from parameters alone would be folded, and be trained instead.
        options.update(dynamo=True, external_data=True, verbose=False, optimize=False)
    else:
        # Folded, parameters and buffers (positions, masks) would come under one kind of name; and
        # the layers of BatchNorm be gone.
        options.update(dynamo=False, opset_version=17, do_constant_folding=False,
                       training=torch.onnx.TrainingMode.PRESERVE)
        if input_names is None:
            options["input_names"] = [f"input_{i}" for i in range(_tensors_in(examples))]
            for name_of_one, example in by_name.items():
                count = _tensors_in(example)
                options["input_names"] += [name_of_one] if isinstance(example, torch.Tensor) else [
                    f"{name_of_one}_{i}" for i in range(count)]
    silence = contextlib.nullcontext() if name == "dynamo" else _without_output()
    with _one_at_a_time, _evaluating(module), _quietly(), torch.no_grad(), silence:
        torch.onnx.export(module, examples, path, kwargs=by_name, **options)


def _one_line(error: BaseException) -> str:
    """What was the first to fail, without the advice that exporters wrap it in."""
    while error.__cause__ is not None:
        error = error.__cause__
    text = re.sub("\\x1b\\[[0-9;]*m", "", str(error))
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return f"{type(error).__name__}: {lines[0]}" if lines else type(error).__name__


def _field(number: int, value: bytes) -> bytes:
    """A field of a protobuf message."""
    size = len(value)
    length = b""
    while size >= 0x80:
        length += bytes([size & 0x7F | 0x80])
        size >>= 7
    # Tags of fields from 16 on have two bytes; those of ONNX that are written here are less.
    return bytes([number << 3 | 2]) + length + bytes([size]) + value


def _mark_untrained(module: Any, path: str) -> None:
    """Says in the file which of its tensors are no parameters, where the exporter did not, or are
    frozen; as the exporter of torch.export says it of buffers.

    A protobuf message with another behind it is both of them: nothing of the file is read.
    """
    parameters = dict(module.named_parameters(remove_duplicate=False))
    kinds = {name: "BUFFER" for name, _ in module.named_buffers(remove_duplicate=False)}
    # A module that is frozen altogether is one to run, and its tensors are weights all the same.
    if any(parameter.requires_grad for parameter in parameters.values()):
        kinds.update((name, "FROZEN") for name, parameter in parameters.items()
                     if not parameter.requires_grad)
    key = b"pkg.torch.export.graph_signature.InputSpec.kind"
    values = b""
    for name, kind in kinds.items():
        entry = _field(1, key) + _field(2, kind.encode())
        values += _field(13, _field(1, name.encode()) + _field(4, entry))  # value_info
    if values:
        with open(path, "ab") as file:
            file.write(_field(7, values))  # graph


def _padding_notes(module: Any) -> tuple[str, ...]:
    """The older exporter drops padding_idx."""
    import torch

    padded = [name for name, part in module.named_modules()
              if isinstance(part, torch.nn.Embedding) and part.padding_idx is not None]
    if not padded:
        return ()
    return (f"{type(module).__name__}: the row that stands for padding (padding_idx), which PyTorch does "
            f"not train, is trained as all rows are, of {', '.join(padded[:3])}"
            f"{', ..' if len(padded) > 3 else ''} (export with exporter=\"dynamo\" to leave it)",)


def _tensors_in(example: Any) -> int:
    """How many tensors there are in one, or in tuples, lists and dicts of such."""
    if isinstance(example, Mapping):
        return sum(map(_tensors_in, example.values()))
    return sum(map(_tensors_in, example)) if isinstance(example, (tuple, list)) else 1


def _check_example(example: Any, what: str) -> None:
    """Raises: InputError: it is no tensor, and no tuple, list or dict of such."""
    import torch

    if isinstance(example, torch.Tensor):
        return
    if isinstance(example, Mapping):
        parts = [(repr(name), part) for name, part in example.items()]
    elif isinstance(example, (tuple, list)):
        parts = [(str(i), part) for i, part in enumerate(example)]
    else:
        raise InputError(f"example_inputs: {what} is a {type(example).__name__}, and a "
                         "torch.Tensor, or a tuple, list or dict of them, is expected")
    for where, part in parts:
        _check_example(part, f"{what}[{where}]")


def _examples_of(module: Any, example_inputs: Any) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Those by place, and those by name, in the order of ``forward``, which exporters keep."""
    import torch

    if isinstance(example_inputs, torch.Tensor):
        return (example_inputs,), {}
    if isinstance(example_inputs, Mapping) and example_inputs:
        for name, example in example_inputs.items():
            if not isinstance(name, str):
                raise InputError(f"example_inputs: {name!r} is a {type(name).__name__}, and a name "
                                 "is expected")
            _check_example(example, repr(name))
        order = [name for name in inspect.signature(module.forward).parameters
                 if name in example_inputs]
        order += [name for name in example_inputs if name not in order]
        return (), {name: example_inputs[name] for name in order}
    if isinstance(example_inputs, (tuple, list)) and example_inputs:
        for i, example in enumerate(example_inputs):
            _check_example(example, f"number {i}")
        return tuple(example_inputs), {}
    raise InputError("a torch.nn.Module needs example_inputs: a tensor, a tuple of tensors, or a "
                     "dict of them by name, to call it with")


def export(module: Any, example_inputs: Any, input_names: Optional[Sequence[str]], exporter: str,
           save_to: Optional[bytes]) -> Export:
    """Exports the module with the exporter, or with the first that can ("auto").

    Raises:
        InputError: what was given is no good; or no exporter can, with the line of each.
    """
    examples, by_name = _examples_of(module, example_inputs)
    names = None if input_names is None else list(input_names)
    inputs = _tensors_in(examples) + _tensors_in(by_name)
    if names is not None and len(names) != inputs:
        raise InputError(f"input_names: there are {len(names)} names of {inputs} inputs")
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
            _export_with(name, module, examples, by_name, names, path)
            _mark_untrained(module, path)
            if name == "torchscript":
                result.notes = _padding_notes(module)
            return result
        except Exception as error:  # pylint: disable=broad-except
            reasons.append(f"{name}: {_one_line(error)}")
    raise InputError(f"{module_name} cannot be exported: " + "; ".join(reasons))
