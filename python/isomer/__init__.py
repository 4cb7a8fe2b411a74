"""Isomer: the fastest proven-equal way to run a network on a cluster.

    import isomer

    model = isomer.load("net.onnx")              # or a torch.nn.Module, or "zoo:bert_large"
    machine = isomer.Machine("dgx_h100", nodes=2)
    plan = isomer.optimize(model, machine, optimizer="adam", precision="bfloat16", time_limit=10)
    print(plan.headline)
    assert plan.verify(model)                    # replays each step of its derivation
    outputs, gradients = plan.run(plan.random_inputs())    # on virtual devices: NumPy in and out

docs/python.md has the rest.
"""

from __future__ import annotations

import os as _os

from . import _isomer, errors as _errors
from .errors import DoesNotFit, Error, InputError, Note
from .machine import Level, Machine, machine_presets
from .model import Model, ZooModel, declare_operators, load, unsupported, zoo
from .plan import Operator, Plan, Prediction, Verification, load_plan
from .progress import Progress
from .search import known_names as _known_names, optimize, search_options
from .session import Check, Difference, Session, StepResult
from .tensors import Tensor

__all__ = [
    "Check", "Difference", "DoesNotFit", "Error", "InputError", "Level", "Machine", "Model", "Note",
    "Operator", "Plan", "Prediction", "Progress", "Session", "StepResult", "Tensor", "Verification",
    "ZooModel", "declare_operators", "load", "load_plan", "machine_presets", "optimize",
    "search_options", "unsupported", "zoo",
]

_errors._know(_known_names(("machine", "nodes", "devices_per_node", "device_memory_gib",
                            "batch_size", "dims", "schedule", "reprove", "learning_rate")))
# Rules and machines: of a package that pip installed in it, of PREFIX/lib/python3/dist-packages in
# PREFIX/share/isomer; of a build they are in the source tree.
for _data in ("data", "../../../../share/isomer"):
    _data = _os.path.join(_os.path.dirname(_os.path.realpath(__file__)), _data)
    if _os.path.isfile(_os.path.join(_data, "rules/default.rules")):
        _isomer.set_data_folder(_os.fsencode(_os.path.normpath(_data)))
        break
