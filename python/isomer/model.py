"""Networks: ONNX files, files of Isomer, the zoo, torch modules."""

from __future__ import annotations

import html
import os
import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, Mapping, Optional, Sequence, Union

from . import _isomer, torch_export
from .background import run
from .errors import InputError, Note, in_python_words
from .tensors import HasTensors
from .text import StrPath, path_bytes, whole_number

if TYPE_CHECKING:
    import torch

Exporter = Literal["auto", "dynamo", "torchscript"]


class Model(HasTensors):
    """A network; made by ``isomer.load``.

    Attributes:
        notes: what its file was taken to mean, where that may be seen otherwise.
    """

    notes: tuple[str, ...]
    _handle: "_isomer.Model"

    def __init__(self, handle: "_isomer.Model", notes: Sequence[str],
                 export: Optional[torch_export.Export] = None) -> None:
        self._handle = handle
        self._export = export  # keeps what weights lie in
        self.notes = tuple(in_python_words(note) for note in notes)

    @property
    def name(self) -> str:
        """As its file says."""
        return self._handle.name

    @property
    def source(self) -> str:
        """What it was loaded from."""
        return self._handle.source

    @property
    def num_operators(self) -> int:
        """How many calls its graph has."""
        return self._handle.operators

    @property
    def num_parameters(self) -> int:
        """How many numbers its weights have."""
        return self._handle.parameters

    def describe(self) -> str:
        """Operators by kind, parameters, FLOPs, inputs and outputs, as text."""
        return self._handle.describe()

    def graph_text(self) -> str:
        """Its graph, a line for each node."""
        return self._handle.text()

    def __repr__(self) -> str:
        return (f"Model({self.name!r}, {self.num_operators} operators, "
                f"{self.num_parameters:,} parameters)")

    def _repr_html_(self) -> str:
        return f"<pre>{html.escape(self.describe())}</pre>"


def _dim_list(dims: Optional[Mapping[str, int]]) -> list[bytes]:
    if dims is None:
        return []
    if not isinstance(dims, Mapping):
        raise InputError("dims: a dict from names of dims to sizes is expected, "
                         f"not {type(dims).__name__}")
    lines = []
    for name, size in dims.items():
        if not isinstance(name, str):
            raise InputError(f"dims: a name is a str, not {name!r}")
        number = whole_number(f"dims: {name}", size, least=1)
        lines.append(f"{name}={number}".encode("utf-8", "surrogateescape"))
    return lines


def load(source: Union[StrPath, "torch.nn.Module"],
         example_inputs: Any = None, *,
         batch_size: int = 0,
         dims: Optional[Mapping[str, int]] = None,
         input_names: Optional[Sequence[str]] = None,
         exporter: Exporter = "auto",
         save_to: Optional[StrPath] = None) -> Model:
    """Reads a network.

    Args:
        source: the path of an ONNX file or of a model file of Isomer; ``"zoo:NAME?key=value"``
            (``isomer.zoo()``); or a ``torch.nn.Module``, which is exported on the spot, as it
            computes in evaluation mode.
        example_inputs: of a module, a tensor, a tuple of tensors, or a dict of them by name
            (``{"input_ids": ids}``), to call it with: their shapes are the network's. In place of a
            tensor may stand a tuple, list or dict of them, as ``forward`` takes it.
        batch_size: of what leaves it open, or of the zoo; 0: as it is there.
        dims: sizes of symbolic dims of an ONNX file, ``{"batch": 8}``.
        input_names: of a module, names of its inputs; those of ``forward`` unless said.
        exporter: of a module: "dynamo", "torchscript" (the older one of ``torch.onnx.export``), or
            "auto", the first that can.
        save_to: of a module, the ONNX file to export to, where weights of more than 8 MiB stay. A
            plan refers to them there. None: a temporary folder, which goes with the last object
            that needs it.

    Raises:
        InputError: names the file, and the node or dim; all that is not supported of a file is
            listed by ``isomer.unsupported``.
    """
    if torch_export.is_module(source):
        if batch_size or dims:
            raise InputError("batch_size and dims are of files; a torch module has the shapes of "
                             "example_inputs")
        return _load_module(source, example_inputs, input_names, exporter, save_to)
    for name, value in (("example_inputs", example_inputs), ("input_names", input_names),
                        ("save_to", save_to)):
        if value is not None:
            raise InputError(f"{name} is for a torch.nn.Module")
    if exporter != "auto":
        raise InputError("exporter is for a torch.nn.Module")
    spec = path_bytes(source, "source")
    return _load_file(spec, whole_number("batch_size", batch_size), _dim_list(dims))


def _load_file(spec: bytes, batch_size: int, dims: list[bytes],
               export: Optional[torch_export.Export] = None) -> Model:
    handle, notes = run(lambda: _isomer.Model.load(spec, batch_size, dims))
    if export is not None:
        notes = [*notes, *export.notes]
        handle.source = export.module_name
    model = Model(handle, notes, export)
    issue_notes(model.notes)
    return model


def _load_module(module: Any, example_inputs: Any, input_names: Optional[Sequence[str]],
                 exporter: str, save_to: Optional[StrPath]) -> Model:
    export = torch_export.export(module, example_inputs, input_names, exporter,
                                 None if save_to is None else path_bytes(save_to, "save_to"))
    return _load_file(os.fsencode(export.path), 0, [], export)


def issue_notes(notes: Sequence[str]) -> None:
    """Shows them as warnings, of the line that called this package."""
    package = os.path.dirname(__file__)
    for note in notes:
        _warn(note, package)


def _warn(note: str, package: str) -> None:
    import sys

    level, frame = 1, sys._getframe()
    while frame is not None and os.path.dirname(frame.f_code.co_filename) == package:
        level += 1
        frame = frame.f_back  # type: ignore[assignment]
    warnings.warn(note, Note, stacklevel=level)


def unsupported(path: StrPath, *, batch_size: int = 0,
                dims: Optional[Mapping[str, int]] = None) -> list[str]:
    """What of an ONNX file is not supported, all of it, a line each; empty: it can be loaded."""
    spec, batch, names = path_bytes(path, "path"), whole_number("batch_size", batch_size), _dim_list(dims)
    return run(lambda: _isomer.unsupported(spec, batch, names))


def declare_operators(path: StrPath) -> None:
    """Reads a file that declares operators of your own (docs/declaring-operators.md).

    Models, plans and rules that have them can be loaded from then on, in this process. To be called before anything
    else is; each file once.

    Raises:
        InputError: the file cannot be read, or says what the language cannot; with line and column.
    """
    _isomer.declare_operators(path_bytes(path, "path"))


@dataclass(frozen=True)
class ZooModel:
    """A network of the zoo.

    Attributes:
        name: ``isomer.load(f"zoo:{name}")`` builds it.
        description: one line.
        parameters: with their defaults; ``"zoo:mlp?layers=3&hidden=64"`` sets two of them.
    """

    name: str
    description: str
    parameters: dict[str, int]


def zoo() -> list[ZooModel]:
    """The networks that come with Isomer."""
    return [ZooModel(*model) for model in _isomer.zoo()]
