# What every export to PyTorch has in it, behind its tables and before its model.


class Leaf(NamedTuple):
    shape: tuple
    placements: list  # as it is stored
    values: InFile | Drawn
    dtype: torch.dtype = torch.float32
    is_trained: bool = True


class Input(NamedTuple):
    shape: tuple  # of the whole batch
    dtype: torch.dtype
    limit: int  # of integers: they are less
    micro_batch_dim: int | None  # a micro-batch is a part of this dim; None: it needs all of it
    name: str  # what the model calls it


def float_type(dtype):
    return FLOAT if dtype == torch.float32 else dtype


def initial(name):
    """The first value of a leaf, all of it; of one in a file, what is used is read."""
    leaf = LEAVES[name]
    if isinstance(leaf.values, Drawn):
        return torch.from_numpy(drawn(leaf.values, leaf.shape)).to(float_type(leaf.dtype))
    count = math.prod(leaf.shape)
    file_type = getattr(torch, leaf.values.dtype)
    x = torch.from_file(
        path_of(leaf.values),
        size=(leaf.values.offset + count * file_type.itemsize),
        dtype=torch.uint8,
    )[leaf.values.offset :]
    if leaf.values.offset % file_type.itemsize:
        x = x.clone()
    return x.view(file_type).reshape(leaf.shape).to(float_type(leaf.dtype))


def local_part(x, mesh, placements):
    """What this device has of a tensor that it is given whole."""
    for digit, placement in enumerate(placements):
        if placement.is_shard():
            x = x.chunk(mesh.size(digit), placement.dim)[mesh.get_local_rank(digit)]
    return x


class Part(nn.Module):
    """A model, or one chunk of it, on the devices of a mesh. Weights go by their first names."""

    READS = ()  # names of leaves

    def __init__(self, mesh):
        super().__init__()
        self.mesh = mesh
        self.calls = 0
        self.leaves, self.sums = {}, {}
        for name in self.READS:
            leaf = LEAVES[name]
            x = local_part(initial(name), mesh, leaf.placements).clone()
            x = x.to(mesh.device_type)
            x = DTensor.from_local(x, mesh, leaf.placements, run_check=False)
            if leaf.is_trained:
                x = nn.Parameter(x)
                x.register_post_accumulate_grad_hook(self.finish_gradient)
            self.leaves[name] = x
            register(self, name, x)

    @property
    def index(self):
        """Of the present micro-batch."""
        return self.calls % MICRO_BATCHES

    def finish_gradient(self, parameter):
        """Behind the last micro-batch, gradients are summed over the devices that share a weight."""
        self.sums[parameter] = self.sums.get(parameter, 0) + 1
        if self.sums[parameter] % MICRO_BATCHES == 0:
            parameter.grad = parameter.grad.redistribute(placements=parameter.placements)

    def weight(self, name, placements, gradient):
        x = self.leaves[name]
        if list(x.placements) != placements:
            x = x.redistribute(placements=placements)
        return x.to_local(grad_placements=gradient)

    def constant(self, name, placements):
        x = self.leaves[name]
        if list(x.placements) == placements:
            return x.to_local()
        return local_part(x.to_local(), self.mesh, placements)

    def take(self, x, placements):
        """This device's part of an input, which every device is given whole."""
        return local_part(x, self.mesh, placements)

    def move(self, x, have, need, gradient=None):
        """Brings a tensor to another placement, and its gradient back."""
        x = DTensor.from_local(x, self.mesh, have, run_check=False)
        if have != need:
            x = x.redistribute(placements=need)
        return x.to_local(grad_placements=gradient or need)

    def at(self, *digits):
        """How far along these digits of the mesh this device is."""
        place = 0
        for digit in digits:
            place = place * self.mesh.size(digit) + self.mesh.get_local_rank(digit)
        return place

    def micro_batch(self, x, dim):
        """The present micro-batch's part of what is the same in all of them."""
        return x.chunk(MICRO_BATCHES, dim)[self.index]

    def __call__(self, *entering):
        """The next micro-batch of self.inputs, with what comes from the chunk before."""
        result = super().__call__(*entering, **cut(self.inputs, self.index))
        self.calls += 1
        return result


def register(module, name, tensor):
    """Registers `tensor` so that state_dict() calls it by `name`, where that is a path of names."""
    *path, last = name.split(".")
    names = [*path, last]
    if not all(n and not hasattr(nn.Module, n) and not hasattr(Part, n) for n in names):
        path, last = [], "_".join(n for n in names if n) + "_"
    for n in path:
        if not isinstance(getattr(module, n, None), nn.Module):
            if hasattr(module, n):
                return register(module, name.replace(".", "_"), tensor)
            module.add_module(n, nn.Module())
        module = getattr(module, n)
    while hasattr(module, last):
        last += "_"
    if isinstance(tensor, nn.Parameter):
        module.register_parameter(last, tensor)
    else:
        module.register_buffer(last, tensor)


def window(x, dim, start, length, outside):
    """[start, start + length) of a dim, `outside` where that is outside."""
    first, last = max(start, 0), min(start + length, x.shape[dim])
    pads = [0, 0] * (x.dim() - 1 - dim) + [first - start, start + length - last]
    return F.pad(x.narrow(dim, first, last - first), pads, value=outside)


def cut(inputs, micro_batch):
    """A micro-batch of inputs."""
    return {
        name: x
        if INPUTS[name].micro_batch_dim is None
        else x.chunk(MICRO_BATCHES, INPUTS[name].micro_batch_dim)[micro_batch]
        for name, x in inputs.items()
    }


def merge(outputs):
    """The outputs of a step, from those of its micro-batches."""
    merged = {}
    for name, how in OUTPUTS.items():
        values = [of[name] for of in outputs]
        merged[name] = values[0] if how is None else sum(values) if how == "sum" else torch.cat(values, how)
    return merged


class Runner:
    """The model on all devices. Everybody calls `step` with the same whole inputs."""

    def __init__(self, device_type="cpu"):
        if dist.get_world_size() != DEVICES:
            raise SystemExit(f"the plan is for {DEVICES} processes, not {dist.get_world_size()}")
        self.devices = init_device_mesh(device_type, MESH, mesh_dim_names=MESH_NAMES)
        inner = tuple(name for name in MESH_NAMES if name != "stage")
        self.mesh = self.devices[inner] if STAGES > 1 else self.devices
        # Moves along neighbouring digits are one collective of a flat mesh.
        for first in range(len(inner)):
            for last in range(first + 2, len(inner) + 1):
                self.mesh[inner[first:last]]._flatten("_".join(inner[first:last]))
        if STAGES > 1:
            self.group = self.devices.get_group("stage")
            here = range(self.devices.get_local_rank("stage"), len(PARTS), STAGES)
        else:
            here = range(1)
        self.parts = {chunk: PARTS[chunk](self.mesh) for chunk in here}
        self.schedule = self.make_schedule(device_type) if STAGES > 1 else None

    def make_schedule(self, device_type):
        stages = []
        for chunk, part in self.parts.items():
            entering, leaving = (
                tuple(
                    torch.empty(
                        shape, dtype=float_type(dtype), device="meta", requires_grad=LOSS is not None
                    )
                    for shape, dtype in BORDERS[i]
                )
                for i in (chunk, chunk + 1)
            )
            stages.append(
                PipelineStage(
                    part,
                    chunk,
                    len(PARTS),
                    torch.device(device_type),
                    input_args=entering,
                    output_args=leaving,
                    group=self.group,
                )
            )
        kind = Schedule1F1B if len(stages) == 1 else ScheduleInterleaved1F1B
        # The model's loss is a mean over all samples: micro-batches' shares of it are added.
        return kind(
            stages[0] if len(stages) == 1 else stages,
            MICRO_BATCHES,
            loss_fn=lambda output, target: output.sum(),
            scale_grads=False,
        )

    def named_parameters(self):
        return {
            name: x
            for part in self.parts.values()
            for name, x in part.leaves.items()
            if isinstance(x, nn.Parameter)
        }

    def step(self, inputs):
        """One step of all micro-batches: outputs, and in training gradients, complete, in .grad.
        Of a pipeline, only the devices of the last stage have outputs; others get None."""
        for part in self.parts.values():
            part.inputs, part.outputs, part.calls = inputs, [], 0
        if self.schedule is None:
            for _ in range(MICRO_BATCHES):
                outputs = self.parts[0]()
                if LOSS is not None:
                    outputs[LOSS].backward()
                self.parts[0].outputs.append({name: x.detach() for name, x in outputs.items()})
            return merge(self.parts[0].outputs)
        last = self.parts.get(len(PARTS) - 1)
        if last is None:
            self.schedule.step()
            return None
        self.schedule.step(target=torch.zeros(MICRO_BATCHES))
        return merge(last.outputs)


def random_inputs(seed=0):
    generator = torch.Generator().manual_seed(seed)
    inputs = {}
    for name, of in INPUTS.items():
        if of.dtype.is_floating_point:
            inputs[name] = torch.randn(of.shape, generator=generator).to(float_type(of.dtype))
        else:
            inputs[name] = torch.randint(0, of.limit, of.shape, generator=generator).to(of.dtype)
    return inputs


def make_optimizer(parameters, learning_rate):
    """That of the plan. Each device updates what it stores; a pipeline stage may have no weights, which
    PyTorch's optimizers refuse."""
    parameters = list(parameters) or [torch.nn.Parameter(torch.empty(0))]
    if OPTIMIZER == "adam":
        return torch.optim.Adam(parameters, lr=learning_rate)
    if OPTIMIZER == "adagrad":
        return torch.optim.Adagrad(parameters, lr=learning_rate)
    return torch.optim.SGD(parameters, lr=learning_rate, momentum=0.9 if OPTIMIZER == "momentum" else 0)


def check(runner, seed=0):
    """How far outputs and gradients are off those of the model as it was before the plan: for each,
    |difference| / |expected| in the Euclidean norm, or |difference| where next to nothing is expected."""
    inputs = random_inputs(seed)
    reference = Reference()
    outputs = runner.step(inputs)
    expected = reference(**inputs)
    if LOSS is not None:
        expected[LOSS].backward()
    # What rounding makes of a gradient that is zero, such as that of a bias before a softmax.
    gradients = {name: x.grad for name, x in reference.leaves.items() if x.grad is not None}
    largest = max([float(g.norm()) for g in gradients.values()], default=0.0)
    errors = {}

    def compare(name, value, of, floor):
        off = float((value.double() - of.double()).norm())
        errors[name] = off / max(float(of.double().norm()), floor, 1e-30)

    if outputs is not None:
        for name in OUTPUTS:
            compare(f"output {name}", outputs[name], expected[name].detach(), 1e-6)
    for name, x in runner.named_parameters().items():
        of = gradients.get(name)
        if of is None and x.grad is None:
            continue
        value = torch.zeros_like(of) if x.grad is None else x.grad.full_tensor()
        compare(f"gradient {name}", value, torch.zeros_like(value) if of is None else of, 1e-3 * largest)
    return errors


def furthest_off(errors):
    """Of what all devices found, the largest: its name and by how much."""
    everybody = [None] * DEVICES
    dist.all_gather_object(everybody, errors)
    pairs = [(math.inf if e != e else e, name) for of in everybody for name, e in of.items()]
    error, name = max(pairs, default=(0.0, "nothing"))
    return name, error


def main():
    global FLOAT
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--check", action="store_true", help="compare a step with the model as it was")
    parser.add_argument("--train", type=int, default=0, metavar="STEPS", help="train on a random batch")
    parser.add_argument("--learning_rate", type=float, default=0.01)
    parser.add_argument("--backend", default="gloo", help="gloo, or nccl for GPUs")
    flags = parser.parse_args()
    if not flags.check and flags.train <= 0:
        parser.error("one of --check and --train=STEPS is needed")
    if "RANK" not in os.environ:  # without torchrun
        os.environ.update(RANK="0", WORLD_SIZE="1", MASTER_ADDR="127.0.0.1", MASTER_PORT="0")
    if flags.backend == "nccl":
        torch.cuda.set_device(int(os.environ.get("LOCAL_RANK", "0")))
    dist.init_process_group(flags.backend)
    failed = False
    try:
        device_type = "cuda" if flags.backend == "nccl" else "cpu"
        say = print if dist.get_rank() == 0 else lambda *_: None
        if flags.check:
            name, error = furthest_off(check(Runner(device_type)))
            says = f"the furthest off is {name} by {error:.2g}"
            if not error <= TOLERANCE:  # Is it rounding?
                FLOAT = torch.float64
                name, in_float64 = furthest_off(check(Runner(device_type)))
                FLOAT = torch.float32
                says += f" (in float64 {name} by {in_float64:.2g})"
                failed = not in_float64 <= FLOAT64_TOLERANCE
            say(f"{'DIFFERS' if failed else 'equal'}: of outputs and gradients {says}")
        if flags.train > 0 and LOSS is not None:
            inputs = random_inputs()
            runner = Runner(device_type)
            optimizer = make_optimizer(runner.named_parameters().values(), flags.learning_rate)
            for step in range(flags.train):
                optimizer.zero_grad()
                outputs = runner.step(inputs)
                optimizer.step()
                if outputs is not None and (DEVICES - dist.get_rank()) == 1:
                    print(f"step {step}: loss {outputs[LOSS].item():.6f}", flush=True)
        elif flags.train > 0:
            say("the plan is for inference: there is nothing to train")
            failed = True
    finally:
        dist.destroy_process_group()
    sys.exit(1 if failed else 0)
