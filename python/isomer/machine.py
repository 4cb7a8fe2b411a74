"""Clusters."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Union

from . import _isomer
from .errors import InputError
from .text import StrPath, bytes_text, path_bytes, whole_number


@dataclass(frozen=True)
class Level:
    """What connects units of a machine: devices to a node, nodes to a cluster.

    Attributes:
        name: "node".
        count: units that it connects.
        bytes_per_s: of each unit and direction, as achieved; of a shared link, in total.
        latency_us: of a message, in microseconds.
        shared: all units share one link.
    """

    name: str
    count: int
    bytes_per_s: float
    latency_us: float
    shared: bool


class Machine:
    """The devices that a plan is for, and the links between them.

    Args:
        spec: a preset (``isomer.machine_presets()``) or a machine file (docs/file-formats.md).
        nodes: how many; 0: as the file says.
        devices_per_node: how many each has; 0: as the file says.
        device_memory_gib: memory of every device in GiB; 0: as the file says.

    Raises:
        InputError: there is no such preset or file, or it is no good; names it, and the level or
            link.

    >>> isomer.Machine("dgx_h100", nodes=2)
    Machine('dgx_h100: 2 nodes of 8 H100-SXM5-80GB')
    """

    def __init__(self, spec: StrPath, nodes: int = 0, devices_per_node: int = 0,
                 device_memory_gib: float = 0) -> None:
        name = path_bytes(spec, "machine")
        if isinstance(device_memory_gib, bool) or not isinstance(device_memory_gib, (int, float)):
            raise InputError(f"device_memory_gib={device_memory_gib!r}: a number is expected")
        self._handle = _isomer.Machine.load(
            name, whole_number("nodes", nodes), whole_number("devices_per_node", devices_per_node),
            float(device_memory_gib))

    @property
    def name(self) -> str:
        """As its file says, "dgx_h100"."""
        return self._handle.name

    @property
    def devices(self) -> int:
        """How many there are, on all nodes together."""
        return self._handle.devices

    @property
    def nodes(self) -> int:
        """How many there are."""
        return self._handle.nodes

    @property
    def device_name(self) -> str:
        """The kind of its devices, "H100-SXM5-80GB"; of several kinds all, joined by " and "."""
        return self._handle.device_name

    @property
    def memory_bytes(self) -> int:
        """Memory of a device in bytes; of several kinds the least."""
        return self._handle.memory_bytes

    @property
    def levels(self) -> tuple[Level, ...]:
        """What connects the devices, innermost first."""
        return tuple(Level(*level) for level in self._handle.levels)

    def describe(self) -> str:
        """Devices, levels, links, and what collectives are predicted to take, as text."""
        return self._handle.describe()

    def svg(self) -> str:
        """A drawing of the machine, one SVG document."""
        return self._handle.svg()

    def __repr__(self) -> str:
        return f"Machine({self._handle.text()!r})"

    def __str__(self) -> str:
        return f"{self._handle.text()}, {bytes_text(self.memory_bytes)} each"

    def _repr_html_(self) -> str:
        return self.svg()


def machine_presets() -> list[str]:
    """The names that ``Machine`` takes."""
    return _isomer.machine_presets()


def as_machine(machine: Union[Machine, str, "os.PathLike[str]"]) -> Machine:
    """`machine`, or the one of that name."""
    return machine if isinstance(machine, Machine) else Machine(machine)


