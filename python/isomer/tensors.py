"""What goes into a network, what comes out of it, and what training changes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Optional, Union

if TYPE_CHECKING:
    from . import _isomer


@dataclass(frozen=True)
class Tensor:
    """An input, an output or a weight.

    Attributes:
        name: what files call it.
        dtype: "f32", "bf16", "f16", "i64", "i32" or "bool".
        shape: all of it, whatever is split.
    """

    name: str
    dtype: str
    shape: tuple[int, ...]


class HasTensors:
    """The tensors of a network, or of a plan for one."""

    _handle: Union["_isomer.Model", "_isomer.Plan"]

    @property
    def inputs(self) -> tuple[Tensor, ...]:
        """What a step is given: a plan for training is also given what the loss compares with."""
        return tuple(Tensor(*tensor) for tensor in self._handle.inputs())

    @property
    def outputs(self) -> tuple[Tensor, ...]:
        """What a step gives back."""
        return tuple(Tensor(*tensor) for tensor in self._handle.outputs())

    @property
    def weights(self) -> tuple[Tensor, ...]:
        """What training changes."""
        return tuple(Tensor(*tensor) for tensor in self._handle.weights())

    @property
    def loss(self) -> Optional[str]:
        """The name of the output that training minimises; None: there is none, and ``optimize``
        adds one to a model."""
        return self._handle.loss or None
