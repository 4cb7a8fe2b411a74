"""Plans that run: NumPy arrays in, NumPy arrays out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Mapping, NamedTuple, Optional, Sequence, Union

from . import _isomer
from .background import run
from .errors import InputError
from .text import whole_number

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from .torch_export import Export

    Arrays = dict[str, np.ndarray[Any, Any]]
    ArrayLikes = Mapping[str, npt.ArrayLike]


class StepResult(NamedTuple):
    """Of a step, by name; tensors are whole, whatever was split."""

    outputs: "Arrays"
    gradients: "Arrays"


@dataclass(frozen=True)
class Difference:
    """A tensor of a plan beside the model's, in the Euclidean norm.

    Attributes:
        error: norm of the difference; infinite where a number is not finite.
        norm: of what the model computes.
        bound: how large an error rounding may make.
        comparable: rounding alone does not change all of it.
        agrees: the error is what rounding may do.
    """

    error: float
    norm: float
    bound: float
    comparable: bool
    agrees: bool


@dataclass(frozen=True)
class Check:
    """A plan's step beside the unoptimised model's. True in conditions if they agree.

    Attributes:
        agrees: a tensor was comparable, and none differs by more than rounding may do
            (docs/running.md).
        max_relative_error: the largest of what is comparable.
        worst: the tensor nearest to its bound, "gradient of layer0/q".
        rounding: what the bounds are of.
        reference: what computed the model, "evaluator" or "cpu backend".
        outputs, gradients: by name.
        in_float32: of a plan of lower precision, the same plan computed in float32.
    """

    agrees: bool
    max_relative_error: float
    worst: str
    rounding: str
    reference: str
    outputs: dict[str, Difference]
    gradients: dict[str, Difference]
    in_float32: Optional["Check"]

    @property
    def compared(self) -> bool:
        """Whether there is a tensor that is comparable. A check that compared nothing does not
        agree."""
        return any(found.comparable for of in (self.outputs, self.gradients)
                   for found in of.values())

    def __bool__(self) -> bool:
        return self.agrees


def _numpy() -> Any:
    try:
        import numpy
    except ImportError:
        raise InputError("running a plan needs NumPy: pip install numpy, "
                         "or apt-get install python3-numpy") from None
    return numpy


def _array(value: Any, what: str) -> Any:
    """`value` as what C++ reads: contiguous, in the byte order of this machine."""
    numpy = _numpy()
    if hasattr(value, "detach"):  # a torch tensor, maybe of a GPU or with a history
        value = value.detach().cpu()
        if str(value.dtype) == "torch.bfloat16":  # which NumPy does not have
            value = value.float()
    try:
        if isinstance(value, numpy.ma.MaskedArray) and value.mask.any():
            raise InputError(f"{what}: some of its elements are masked, and have no value")
        array = numpy.asarray(value)
    except InputError:
        raise
    except (TypeError, ValueError) as error:
        raise InputError(f"{what}: {error}") from None
    if array.dtype.name == "bfloat16" or array.dtype == numpy.longdouble:
        array = array.astype(numpy.float64)
    if array.dtype.kind not in "fiub":
        raise InputError(f"{what}: an array of numbers is expected, not of {array.dtype}")
    return numpy.asarray(array, dtype=array.dtype.newbyteorder("="), order="C")


def _arrays(values: Any, what: str) -> dict[str, Any]:
    if not isinstance(values, Mapping):
        raise InputError(f"{what}s: a dict from names to arrays is expected, "
                         f"not {type(values).__name__}")
    arrays = {}
    for name, value in values.items():
        if not isinstance(name, str):
            raise InputError(f"{what}s: a name is a str, not {name!r}")
        arrays[name] = _array(value, f"{what} '{name}'")
    return arrays


def _to_numpy(tensors: Mapping[str, Any]) -> "Arrays":
    numpy = _numpy()
    # The memory is the tensors' own.
    return {name: numpy.asarray(tensor) for name, tensor in tensors.items()}


def _seed(seed: int) -> int:
    return whole_number("seed", seed, most=2**64 - 1)


class Session:
    """A plan on its virtual devices, with its weights; made by ``Plan.session``.

    Calls from several threads wait for each other. After an error, as of an index out of range, it
    is over: every later call raises that error.
    """

    def __init__(self, handle: "_isomer.Plan", weights: Optional["ArrayLikes"], seed: int,
                 execution: str, export: Optional["Export"], *, weight_decay: float = 0.0,
                 no_decay: Optional[str] = None, clip_norm: float = 0.0) -> None:
        given = {} if weights is None else _arrays(weights, "weight")
        number = _seed(seed)
        if not isinstance(execution, str):
            raise InputError(f"execution={execution!r}: a str is expected")
        decay, clip = _not_negative("weight_decay", weight_decay), _not_negative("clip_norm",
                                                                                 clip_norm)
        if no_decay is not None and not isinstance(no_decay, str):
            raise InputError(f"no_decay={no_decay!r}: a str is expected, or None")
        if handle.mode != "training" and (decay > 0 or clip > 0 or no_decay is not None):
            raise InputError("weight_decay, no_decay and clip_norm are of training, and this plan "
                             "is for inference")
        if no_decay is not None and decay == 0:
            raise InputError("no_decay needs a weight_decay above 0")
        self._mode = handle.mode
        self._export = export
        self._handle = run(
            lambda: _isomer.Session(handle, given, number, execution, decay, no_decay, clip))

    @property
    def steps_between_flushes(self) -> int:
        """How many steps ``step`` does at once: 1, unless a pipeline is drained less often."""
        return self._handle.steps_between_flushes

    @property
    def step_us(self) -> float:
        """Time of the last step here, in microseconds, from the first device's start to the last's
        end."""
        return self._handle.step_us

    def step(self, inputs: Union["ArrayLikes", Sequence["ArrayLikes"]],
             learning_rate: float = 0.1) -> "Arrays":
        """Does a step of training, and returns its outputs, whose weights are those before it.

        Args:
            inputs: as in ``Plan.run``. Of ``steps_between_flushes`` steps a list of so many, and
                outputs are the last one's.
            learning_rate: of the plan's optimizer.
        """
        if self._mode != "training":
            raise InputError("step is of training, and this plan is for inference: evaluate")
        rate = _learning_rate(learning_rate)
        steps = [inputs] if isinstance(inputs, Mapping) else list(inputs)
        if len(steps) != self.steps_between_flushes:
            raise InputError(f"inputs of {self.steps_between_flushes} steps are expected, between "
                             f"which the pipeline is not drained, not of {len(steps)}")
        arrays = [_arrays(values, "input") for values in steps]
        run(lambda: self._handle.train(arrays, rate))
        return self._outputs(len(steps) - 1)

    def evaluate(self, inputs: "ArrayLikes") -> "Arrays":
        """Does a forward pass with the weights as they are now, and returns its outputs."""
        arrays = _arrays(inputs, "input")
        run(lambda: self._handle.evaluate(arrays))
        return self._outputs(self.steps_between_flushes - 1)

    def gradients(self) -> "Arrays":
        """Of the last step of training, by name of the weight."""
        if self._mode != "training":
            return {}
        last = self.steps_between_flushes - 1
        return _to_numpy(run(lambda: self._handle.gradients(last)))

    def parameters(self) -> "Arrays":
        """The weights as they are now, by name."""
        return _to_numpy(run(self._handle.parameters))

    def first_step(self, inputs: "ArrayLikes") -> StepResult:
        """Forward and, of training, backward, with no change of weights: what ``Plan.run`` does."""
        if self._mode != "training":
            return StepResult(self.evaluate(inputs), {})
        arrays = [_arrays(inputs, "input")] * self.steps_between_flushes
        run(lambda: self._handle.train(arrays, 0.0))
        return StepResult(self._outputs(0), _to_numpy(run(lambda: self._handle.gradients(0))))

    def _outputs(self, step: int) -> "Arrays":
        return _to_numpy(run(lambda: self._handle.outputs(step)))


def _not_negative(what: str, value: float) -> float:
    try:
        number = float(value)
    except (TypeError, ValueError):
        number = -1
    if not 0 <= number < float("inf"):
        raise InputError(f"{what}={value!r}: a number of 0 or more is expected")
    return number


def _learning_rate(rate: float) -> float:
    return _not_negative("learning_rate", rate)


def _check_of(found: Mapping[str, Any], reference: str) -> Check:
    within = found.get("in_float32")
    return Check(
        agrees=found["agrees"], max_relative_error=found["max_relative_error"],
        worst=found["worst"], rounding=found["rounding"], reference=reference,
        outputs={name: Difference(*row) for name, row in found["outputs"].items()},
        gradients={name: Difference(*row) for name, row in found["gradients"].items()},
        in_float32=None if within is None else _check_of(within, reference))


def checked(session: Session, inputs: "ArrayLikes") -> Check:
    """The first step of a session beside the model's."""
    arrays = _arrays(inputs, "input")
    for name, array in arrays.items():
        if array.dtype.kind == "f" and not _numpy().isfinite(array).all():
            raise InputError(f"input '{name}': not all of its numbers are finite, and what others "
                             "make of these cannot be compared")
    found = run(lambda: session._handle.check(arrays))
    return _check_of(found, found["reference"])


def random_inputs(handle: "_isomer.Plan", seed: int) -> "Arrays":
    """As ``Plan.random_inputs``."""
    number = _seed(seed)
    return _to_numpy(run(lambda: _isomer.random_inputs(handle, number)))
