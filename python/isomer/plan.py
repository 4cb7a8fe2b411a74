"""Plans: what the search finds, what a file holds."""

from __future__ import annotations

import html
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, Mapping, NamedTuple, Optional, Union

from . import _isomer
from .background import run
from .errors import InputError, in_python_words
from .machine import Machine, as_machine
from .model import Model, load
from .session import Check, Session, StepResult, checked, random_inputs
from .tensors import HasTensors
from .text import StrPath, bytes_text, path_bytes, step_text

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from .torch_export import Export

#: Operators that a notebook shows, those that take longest.
SHOWN_OPERATORS = 12


@dataclass(frozen=True)
class Operator:
    """A call of a plan's graph, computed in tasks on devices.

    Attributes:
        id: of its node; results are of earlier ones.
        name: what the model's file calls it, "layer0/q"; "" for what the plan adds.
        kind: "matmul", "relu"; of parallel operators "partition", "combine", "replicate", "reduce".
        dtype: of its first result, as ``Tensor.dtype``.
        shape: of its first result, all of it.
        shard_shape: of that what a task computes.
        degrees: into how many parts each dim is split.
        copies: how often each part is held.
        partials: of how many summands, not yet added up, it consists.
        micro_batches: in which a device computes its part, one after the other.
        devices: that have a part, ascending.
        split: the same in words, "batch over 2 nodes"; None where the plan has no times, and of
            parallel operators.
        forward_us, backward_us: predicted time of a step in microseconds, on the device where it is
            longest; None where the plan has no times.
    """

    id: int
    name: str
    kind: str
    dtype: str
    shape: tuple[int, ...]
    shard_shape: tuple[int, ...]
    degrees: tuple[int, ...]
    copies: int
    partials: int
    micro_batches: int
    devices: tuple[int, ...]
    split: Optional[str]
    forward_us: Optional[float]
    backward_us: Optional[float]

    @property
    def time_us(self) -> Optional[float]:
        """Forward and backward together, in microseconds."""
        if self.forward_us is None or self.backward_us is None:
            return None
        return self.forward_us + self.backward_us


class Prediction(NamedTuple):
    """A step of a plan, predicted: its time in microseconds, and the most memory of a device."""

    step_us: float
    peak_bytes: int


@dataclass(frozen=True)
class Verification:
    """What the checker of certificates says of a plan. True in conditions if it accepts.

    Attributes:
        accepted: the plan computes what its model does, and can run.
        reason: what is refused and why, one line; "" if nothing is.
        steps: rewrites from the model's graph to the plan's.
        steps_by: how many of them were decided by what.
        lemmas: premises that decisions rest on, by name (docs/lemmas.md).
        scheduled_devices: devices whose programs were checked.
        rules_proved: of ``reprove``, how many rules there are; else None.
        loss: of the model that was given, in training, what the plan's loss is.
        outputs_left_out: of that model, how many the plan does not give back.
        deviations: in what a step of the plan is not the model's, though its graph is equal.
        assumptions: what the model's file was taken to mean.
        seconds: by part of the check.
    """

    accepted: bool
    reason: str
    steps: int
    steps_by: dict[str, int]
    lemmas: tuple[str, ...]
    scheduled_devices: int
    rules_proved: Optional[int]
    loss: Optional[str]
    outputs_left_out: int
    deviations: tuple[str, ...]
    assumptions: tuple[str, ...]
    seconds: dict[str, float]

    def __bool__(self) -> bool:
        return self.accepted


class Plan(HasTensors):
    """The fastest equal way to run a model on a machine that was found; by ``isomer.optimize``,
    ``isomer.load_plan`` or ``Plan.price``.

    A plan from a file has no times: what needs them says so, and ``price`` predicts them.

    Attributes:
        notes: what a user should see of the search, though nothing is wrong.
    """

    notes: tuple[str, ...]
    _handle: "_isomer.Plan"

    def __init__(self, handle: "_isomer.Plan", export: Optional["Export"] = None) -> None:
        self._handle = handle
        self._export = export  # keeps what weights lie in
        self._operators: Optional[tuple[Operator, ...]] = None
        self.notes = tuple(in_python_words(note) for note in handle.notes)

    # What it is.

    @property
    def model_name(self) -> str:
        """Of the model inside of it."""
        return self._handle.model_name

    @property
    def machine_name(self) -> str:
        """Of the machine that it was made for."""
        return self._handle.machine_name

    @property
    def devices(self) -> int:
        """How many it is for."""
        return self._handle.devices

    @property
    def mode(self) -> str:
        """"training" or "inference"."""
        return self._handle.mode

    @property
    def precision(self) -> str:
        """What it computes in: "float32", "bfloat16" or "float16"."""
        return self._handle.precision

    @property
    def optimizer(self) -> str:
        """Of weights, in training: "sgd", "momentum", "adam", "lion" or "adagrad"."""
        return self._handle.optimizer

    @property
    def update(self) -> str:
        """How copies of weights are kept equal, "sharded"."""
        return self._handle.update

    @property
    def operators(self) -> tuple[Operator, ...]:
        """The calls of its graph, each after those whose results it takes."""
        if self._operators is None:
            self._operators = tuple(Operator(*row) for row in run(self._handle.operators))
        return self._operators

    @property
    def steps(self) -> tuple[str, ...]:
        """Its derivation: the rule of each rewrite, ""  where the step itself says what it does."""
        return tuple(self._handle.steps())

    @property
    def deviations(self) -> tuple[str, ...]:
        """In what a step is not the model's, though the graph is equal: precision, old weights."""
        return tuple(self._handle.deviations)

    def graph_text(self) -> str:
        """Its graph, a line for each node."""
        return self._handle.graph_text()

    def graph_dot(self) -> str:
        """Its graph in the language of Graphviz."""
        return self._handle.graph_dot()

    # What is predicted of it.

    @property
    def is_priced(self) -> bool:
        """Whether it has times: not if it comes from a file."""
        return self._handle.is_priced

    @property
    def fits(self) -> bool:
        """Whether it fits into its machine's memory. What ``optimize`` returns does."""
        return self._handle.fits

    @property
    def predicted_step_us(self) -> float:
        """Time of a step in microseconds; of a loaded plan, as its maker predicted it."""
        return self._handle.predicted_step_us

    @property
    def predicted_peak_bytes(self) -> int:
        """The most memory that a device needs, in bytes."""
        return self._handle.predicted_peak_bytes

    @property
    def memory(self) -> dict[str, int]:
        """Bytes on the fullest device at its peak, by what they are for: "weights"."""
        return self._handle.memory()

    @property
    def headline(self) -> str:
        """The plan in a line: its degrees, step, throughput and memory."""
        return self._handle.headline()

    @property
    def summary(self) -> dict[str, Any]:
        """What ``isomer-optimize --json`` writes (docs/file-formats.md)."""
        summary: dict[str, Any] = json.loads(self._handle.json())
        return summary

    @property
    def stop_reason(self) -> Optional[str]:
        """Why the search ended: "exhausted", "time limit", "interrupted", ..; None: no search."""
        search = self.summary.get("search")
        return None if search is None else search["stop_reason"]

    @property
    def baselines(self) -> dict[str, Prediction]:
        """What plans by hand take, "data_parallel", as far as they were simulated."""
        return {name: Prediction(p["predicted_step_us"], p["predicted_peak_bytes"])
                for name, p in self.summary["baselines"].items()}

    def to_json(self) -> str:
        """``summary`` as the text that the program writes."""
        return self._handle.json()

    def explain(self) -> str:
        """The report that ``isomer-optimize`` prints: operators, communication, memory, baselines."""
        return self._handle.text()

    # What can be done with it.

    def save(self, path: StrPath) -> None:
        """Writes a plan file, byte by byte that of ``isomer-optimize --out``.

        Raises:
            InputError: it cannot be written; the plan does not fit; or its weights lie in a
                temporary folder, because a torch module was loaded without ``save_to``.
        """
        name = path_bytes(path, "path")
        self._refuse_temporary_weights()
        run(lambda: self._handle.save(name))

    def _refuse_temporary_weights(self) -> None:
        if self._export is not None and self._export.is_temporary and self._refers_to_files():
            raise InputError("the weights of this plan's model lie in a temporary folder, to which "
                             "a file would refer: isomer.load(module, inputs, save_to=FILE)")

    def _refers_to_files(self) -> bool:
        return bool(self._handle.weight_files)

    def report(self, path: StrPath) -> None:
        """Writes all of it as one page of HTML (docs/report.md), which needs nothing else."""
        name = path_bytes(path, "path")
        run(lambda: self._handle.write_page(name))

    def timeline(self, path: StrPath) -> None:
        """Writes the simulated step as an SVG drawing."""
        name = path_bytes(path, "path")
        run(lambda: self._handle.write_timeline(name))

    def trace(self, path: StrPath) -> None:
        """Writes the simulated step as a trace for Chrome or Perfetto."""
        name = path_bytes(path, "path")
        run(lambda: self._handle.write_trace(name))

    def export_onnx(self, path: StrPath) -> None:
        """Writes its graph as an ONNX file: of a plan for inference on one device.

        In opset 17, or the first after it that has all that is written."""
        name = path_bytes(path, "path")
        run(lambda: self._handle.write_onnx(name))

    def export(self, path: StrPath, to: Literal["pytorch", "jax"] = "pytorch") -> tuple[str, ...]:
        """Writes the plan as a Python file that trains in another framework (docs/exports.md), as
        ``isomer-optimize export`` does; its weights go to a .safetensors file beside it.

        Args:
            to: "pytorch", a file that torchrun starts; or "jax".

        Returns:
            What is not as the plan has it, a line each.

        Raises:
            InputError: the framework cannot say the plan; the file cannot be written; or its
                weights lie in a temporary folder, because a torch module was loaded without
                ``save_to``.
        """
        if to not in ("pytorch", "jax"):
            raise InputError(f"to={to!r}: there are pytorch and jax")
        name = path_bytes(path, "path")
        self._refuse_temporary_weights()
        return tuple(run(lambda: self._handle.write_framework(to, name)))

    def price(self, machine: Union[Machine, StrPath], *, rules: StrPath = "",
              profile: StrPath = "", profile_of_another_device: bool = False) -> "Plan":
        """The same plan with predictions for `machine`, which may be another than it was made for.

        Args:
            machine: with at least as many devices.
            rules: the file that the plan was made with; "": the one that comes with Isomer.
            profile: measured times of kernels (docs/profiles.md); "": the machine's roofline.
            profile_of_another_device: take it though it was measured on another device.

        Raises:
            InputError: the machine has fewer devices; a file is no good.

        It may not fit there (``fits``), which is no error.
        """
        options: dict[str, Any] = {}
        if rules:
            options["rules"] = path_bytes(rules, "rules")
        if profile:
            options["profile"] = path_bytes(profile, "profile")
        if profile_of_another_device:
            options["profile_of_another_device"] = True
        target = as_machine(machine)
        handle = run(lambda: self._handle.price(target._handle, options))
        return Plan(handle, self._export)

    def verify(self, model: Union[Model, StrPath, None] = None, *,
               rules: StrPath = "", schedule: Literal["classes", "all", "none"] = "classes",
               reprove: bool = False) -> Verification:
        """Checks its certificate, as ``isomer-verify plan`` does: replays each step, shows that it
        changes no value, checks types, views and the schedule (docs/proof.md).

        Args:
            model: what it is to be of, with the batch size and dims of the plan; None: the model
                inside of the plan is believed to be yours.
            rules: the file that it was made with; "": the one that comes with Isomer.
            schedule: lower it and check one device of each class of those that do the same
                ("classes"), every device ("all"), or nothing ("none").
            reprove: prove besides, for all sizes, every rule that it was made with; takes longer.

        Raises:
            InputError: an argument is no good. A plan that is refused is a result.
        """
        rules_path = path_bytes(rules, "rules") if rules else b""
        own = model if model is None or isinstance(model, Model) else load(model)
        if not isinstance(schedule, str):
            raise InputError(f"schedule={schedule!r}: there are classes, all and none")
        if not isinstance(reprove, bool):
            raise InputError(f"reprove={reprove!r}: True or False is expected")
        handle = None if own is None else own._handle
        found = run(lambda: self._handle.verify(handle, rules_path, schedule, reprove))
        return Verification(
            accepted=found["accepted"], reason=in_python_words(found["reason"]),
            steps=found["steps"], steps_by=found["steps_by"], lemmas=tuple(found["lemmas"]),
            scheduled_devices=found["scheduled_devices"], rules_proved=found["rules_proved"],
            loss=found["loss"] or None, outputs_left_out=found["outputs_left_out"],
            deviations=tuple(found["deviations"]), assumptions=tuple(found["assumptions"]),
            seconds=found["seconds"])

    def session(self, *, weights: Optional[Mapping[str, "npt.ArrayLike"]] = None, seed: int = 1,
                execution: Literal["inline", "threaded", "adversarial"] = "inline",
                weight_decay: float = 0.0, no_decay: Optional[str] = None,
                clip_norm: float = 0.0) -> Session:
        """Starts it on virtual devices, a thread each, for several steps.

        Args:
            weights: in place of the model's, by name, float arrays of their shapes.
            seed: of weights that neither has, which are drawn.
            execution: how a device runs its queues (docs/running.md).
            weight_decay: of weights of two and more dims, or of those whose names the regular
                expression no_decay does not match; "" matches none (docs/training.md).
            clip_norm: gradients whose global norm is larger are scaled down to it; 0: none are.

        Raises:
            InputError: a weight is not known or has another shape; more than 256 devices.
            DoesNotFit: this computer has too little memory.
        """
        return Session(self._handle, weights, seed, execution, self._export,
                       weight_decay=weight_decay, no_decay=no_decay, clip_norm=clip_norm)

    def run(self, inputs: Mapping[str, "npt.ArrayLike"], *,
            weights: Optional[Mapping[str, "npt.ArrayLike"]] = None,
            seed: int = 1) -> StepResult:
        """Does one step on virtual devices: of training, forward and backward.

        Args:
            inputs: an array for each of ``Plan.inputs``, of its shape; floats for floats, integers
                for integers. What is contiguous and of the machine's byte order is read where it
                lies.
            weights, seed: as in ``session``.

        Returns:
            ``outputs, gradients = plan.run(..)``: NumPy arrays by name, float32 where the model has
            floats. Gradients are those of the loss by ``Plan.weights``; of inference there are
            none.
        """
        session = self.session(weights=weights, seed=seed)
        return session.first_step(inputs)

    def random_inputs(self, seed: int = 1) -> dict[str, "np.ndarray[Any, Any]"]:
        """Inputs to try it with: normal numbers, indices in range. Those of ``isomer-run --seed``."""
        return random_inputs(self._handle, seed)

    def check(self, inputs: Optional[Mapping[str, "npt.ArrayLike"]] = None, *,
              weights: Optional[Mapping[str, "npt.ArrayLike"]] = None, seed: int = 1) -> Check:
        """Runs a step of the plan and of the unoptimised model on one device, and compares outputs
        and all gradients, as ``isomer-run --check`` does.

        Args:
            inputs: as in ``run``; None: random ones.
            weights, seed: as in ``session``.
        """
        given = self.random_inputs(seed) if inputs is None else inputs
        return checked(self.session(weights=weights, seed=seed), given)

    # How it is shown.

    def __repr__(self) -> str:
        return (f"Plan({self.model_name!r} for {self.devices} devices of {self.machine_name}, "
                f"{self.mode} in {self.precision}, {step_text(self.predicted_step_us)} a step)")

    def _repr_html_(self) -> str:
        rows = [("predicted step", step_text(self.predicted_step_us)),
                ("memory of a device", bytes_text(self.predicted_peak_bytes))]
        if not self.is_priced:
            return _page(repr(self), _table(("", ""), rows))
        for name, baseline in self.baselines.items():
            rows.append((f"{name}", f"{step_text(baseline.step_us)}, "
                         f"{bytes_text(baseline.peak_bytes)}"))
        slowest = sorted((op for op in self.operators if op.time_us),
                         key=lambda op: -(op.time_us or 0))[:SHOWN_OPERATORS]
        operators = [(op.name or op.kind, op.kind, str(op.shape), op.split or "",
                      step_text(op.time_us or 0)) for op in slowest]
        return _page(self.headline, _table(("", ""), rows) + _table(
            ("operator", "kind", "shape", "what is split, and where", "a step"), operators))


def _page(title: str, body: str) -> str:
    return f"<div><b>{html.escape(title)}</b>{body}</div>"


def _table(header: tuple[str, ...], rows: list[Any]) -> str:
    def row(cells: tuple[str, ...], tag: str) -> str:
        return "<tr>" + "".join(f"<{tag}>{html.escape(cell)}</{tag}>" for cell in cells) + "</tr>"

    head = row(header, "th") if any(header) else ""
    return "<table>" + head + "".join(row(cells, "td") for cells in rows) + "</table>"


def load_plan(path: StrPath) -> Plan:
    """Reads a plan file.

    Raises:
        InputError: there is none, or it is damaged. What it says is believed until ``verify``.
    """
    name = path_bytes(path, "path")
    return Plan(run(lambda: _isomer.Plan.load(name)))
