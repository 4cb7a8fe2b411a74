# What every export to JAX has in it, before its tables and its model.


class Leaf(NamedTuple):
    shape: tuple
    placements: list  # as it is stored
    values: InFile | Drawn
    dtype: type = jnp.float32
    is_trained: bool = True
    read: list | None = None  # as a step has it, if not as it is stored
    summed: list | None = None  # what the gradients of a micro-batch are, if not placed as stored
    sums_each: bool = False  # they are summed over devices at once, and not behind the last

    def as_read(self):
        return self.read or self.placements

    def as_summed(self):
        return self.summed or self.placements


class Input(NamedTuple):
    shape: tuple  # of the whole batch
    dtype: type
    limit: int  # of integers: they are less
    micro_batch_dim: int | None  # a micro-batch is a part of this dim; None: it needs all of it
    placements: list
    name: str  # what the model calls it


class Output(NamedTuple):
    joined: int | str | None  # micro-batches: along a dim, "sum", or None: all the same
    placements: list


def float_type(dtype):
    return FLOAT if dtype == jnp.float32 else dtype


def initial(name):
    """The first value of a leaf, all of it; of one in a file, what is used is read."""
    leaf = LEAVES[name]
    if isinstance(leaf.values, Drawn):
        return drawn(leaf.values, leaf.shape)
    file_type = jnp.dtype(leaf.values.dtype)
    size = math.prod(leaf.shape) * file_type.itemsize
    start = leaf.values.offset
    x = np.memmap(path_of(leaf.values), np.uint8, mode="r", offset=start, shape=(size,))
    return x.view(file_type).reshape(leaf.shape)


def spec_of(placements, *before):
    """As JAX says it: for each dim, behind others, the digits of the mesh that split it."""
    split = range(max((p + 1 for p in placements if p not in (R, P)), default=0))
    names = [[n for n, p in zip(MESH_NAMES, placements) if p == dim] for dim in split]
    return PartitionSpec(*before, *(tuple(of) if of else None for of in names))


def redistribute(x, have, need):
    """Brings what each device has of a tensor from one placement to another."""
    now = list(have)

    def digits_of(dim, placements):
        return [digit for digit, p in enumerate(placements) if p == dim]

    def can_split(digit):
        """Whether the digit may split its dim next: outer ones do, as they are to, and no inner one."""
        dim = need[digit]
        outer = all((now[d] == dim) == (need[d] == dim) for d in range(digit))
        return dim not in (R, P) and outer and dim not in now[digit + 1 :]

    for digit in digits_of(P, now):
        if can_split(digit):
            dim = now[digit] = need[digit]
            x = jax.lax.psum_scatter(x, MESH_NAMES[digit], scatter_dimension=dim, tiled=True)
    sums = [digit for digit in digits_of(P, now) if need[digit] != P]
    if sums:
        x = jax.lax.psum(x, tuple(MESH_NAMES[digit] for digit in sums))
        for digit in sums:
            now[digit] = R
    for dim in range(x.ndim):
        moving, staying = digits_of(dim, now), digits_of(dim, need)
        while moving and staying and moving[0] == staying[0]:  # outermost ones that stay
            del moving[0], staying[0]
        while moving and can_split(moving[-1]):
            digit = moving.pop()
            now[digit] = need[digit]
            x = jax.lax.all_to_all(x, MESH_NAMES[digit], need[digit], dim, tiled=True)
        if moving:
            x = jax.lax.all_gather(x, tuple(MESH_NAMES[d] for d in moving), axis=dim, tiled=True)
            for digit in moving:
                now[digit] = R
    for digit, dim in enumerate(need):
        if now[digit] != dim:
            size = x.shape[dim] // MESH[digit]
            start = jax.lax.axis_index(MESH_NAMES[digit]) * size
            x = jax.lax.dynamic_slice_in_dim(x, start, size, dim)
    return x


@functools.partial(jax.custom_vjp, nondiff_argnums=(1, 2, 3, 4))
def moved(x, have, need, gradient, back):
    """redistribute(x, have, need), whose gradient is brought from `gradient` to `back`."""
    return redistribute(x, have, need)


moved.defvjp(
    lambda x, have, need, gradient, back: (redistribute(x, have, need), None),
    lambda have, need, gradient, back, _, g: (redistribute(g, gradient, back),),
)


def keep(x):
    """Results that the backward pass does not compute again."""
    return jax.tree.map(lambda y: checkpoint_name(y, "kept"), x)


class Part:
    """A micro-batch of a model on one device. Leaves are what it has of them, by their first names."""

    def __init__(self, leaves, index=0):
        self.leaves, self.index = leaves, index

    def weight(self, name, placements, gradient):
        leaf = LEAVES[name]
        x = self.leaves[name]
        return moved(x, leaf.as_read(), placements, gradient, leaf.as_summed())

    def constant(self, name, placements):
        return redistribute(self.leaves[name], LEAVES[name].placements, placements)

    def move(self, x, have, need, gradient=None):
        """Brings a tensor to another placement, and its gradient back."""
        if not jnp.issubdtype(x.dtype, jnp.floating):
            return redistribute(x, have, need)
        return moved(x, have, need, gradient or need, [R if p == P else p for p in have])

    def at(self, *digits):
        """How far along these digits of the mesh this device is."""
        place = 0
        for digit in digits:
            place = place * MESH[digit] + jax.lax.axis_index(MESH_NAMES[digit])
        return place

    def micro_batch(self, x, dim):
        """The present micro-batch's part of what is the same in all of them."""
        size = x.shape[dim] // MICRO_BATCHES
        return jax.lax.dynamic_slice_in_dim(x, self.index * size, size, dim)


def window(x, dim, start, length, outside):
    """[start, start + length) of a dim, `outside` where that is outside."""
    around = [(length, length, 0) if d == dim else (0, 0, 0) for d in range(x.ndim)]
    x = jax.lax.pad(x, jnp.asarray(outside, x.dtype), around)
    return jax.lax.dynamic_slice_in_dim(x, start + length, length, dim)


def make_mesh():
    devices = jax.devices()
    if len(devices) < DEVICES:
        raise SystemExit(
            f"the plan is for {DEVICES} devices, and there are {len(devices)} "
            f"(on a host: XLA_FLAGS=--xla_force_host_platform_device_count={DEVICES})"
        )
    return Mesh(np.array(devices[:DEVICES]).reshape(MESH), MESH_NAMES)


def placed(mesh, name):
    """The sharding of a leaf between steps: of its optimizer's states, too."""
    return NamedSharding(mesh, spec_of(LEAVES[name].placements))


def put_leaves(mesh, is_trained):
    """The first values of weights, or of constants, by name: each device has its part."""

    def put(name, leaf):
        whole = initial(name)
        return jax.make_array_from_callback(
            leaf.shape,
            placed(mesh, name),
            lambda part: np.asarray(whole[part]).astype(float_type(leaf.dtype)),
        )

    return {name: put(name, leaf) for name, leaf in LEAVES.items() if leaf.is_trained == is_trained}


def put_inputs(mesh, inputs):
    """Whole inputs by name: each device gets its part."""
    return {
        name: jax.device_put(x, NamedSharding(mesh, spec_of(INPUTS[name].placements)))
        for name, x in inputs.items()
    }


def cut(inputs):
    """Inputs of which a micro-batch is a part, with the micro-batches as a dim in front; others."""
    parts, others = {}, {}
    for name, x in inputs.items():
        dim = INPUTS[name].micro_batch_dim
        if dim is None:
            others[name] = x
        else:
            parts[name] = jnp.stack(jnp.split(x, MICRO_BATCHES, dim))
    return parts, others


def merge(outputs):
    """The outputs of a step, from those of its micro-batches, which are a dim in front."""

    def merged(joined, x):
        return x[0] if joined is None else x.sum(0) if joined == "sum" else jnp.concatenate(x, joined)

    return {name: merged(OUTPUTS[name].joined, x) for name, x in outputs.items()}


def loss_of(outputs):
    return outputs[LOSS] if LOSS is not None else 0.0


def step_on_device(weights, constants, parts, others):
    """A step on what one device has: gradients of its part of the weights, if any, and outputs."""
    read = {
        name: redistribute(x, LEAVES[name].placements, LEAVES[name].as_read())
        for name, x in weights.items()
    }

    def run(read, index, inputs):
        outputs = Model({**constants, **read}, index).forward(**inputs, **others)
        return loss_of(outputs), outputs

    def over_devices(name, gradient):
        return redistribute(gradient, LEAVES[name].as_summed(), LEAVES[name].placements)

    def micro_batch(sums, each):
        if LOSS is None:
            return sums, run(read, *each)[1]
        (_, outputs), gradients = jax.value_and_grad(again, has_aux=True)(read, *each)
        for name, gradient in gradients.items():
            if LEAVES[name].sums_each:
                gradient = over_devices(name, gradient)
            sums = {**sums, name: sums[name] + gradient}
        return sums, outputs

    kept = jax.checkpoint_policies.save_only_these_names("kept")
    again = jax.checkpoint(run, policy=kept) if RECOMPUTES else run
    sums = {}
    if LOSS is not None:
        sums = {n: jnp.zeros_like(weights[n] if LEAVES[n].sums_each else x) for n, x in read.items()}
    sums, outputs = jax.lax.scan(micro_batch, sums, (jnp.arange(MICRO_BATCHES), parts))
    return {n: g if LEAVES[n].sums_each else over_devices(n, g) for n, g in sums.items()}, outputs


def make_step(mesh):
    """A step of all micro-batches, as a function of weights and constants (put_leaves) and inputs
    (put_inputs): gives outputs and, in training, gradients, which lie where the weights do."""
    weights, constants = (
        {n: spec_of(leaf.placements) for n, leaf in LEAVES.items() if leaf.is_trained == is_trained}
        for is_trained in (True, False)
    )
    parts = {n: spec_of(of.placements, None) for n, of in INPUTS.items() if of.micro_batch_dim is not None}
    others = {n: spec_of(of.placements) for n, of in INPUTS.items() if of.micro_batch_dim is None}
    outputs = {name: spec_of(of.placements, None) for name, of in OUTPUTS.items()}
    on_devices = jax.shard_map(
        step_on_device,
        mesh=mesh,
        in_specs=(weights, constants, parts, others),
        out_specs=(weights if LOSS is not None else {}, outputs),
        check_vma=False,  # placements say what is a copy
    )

    @jax.jit
    def step(weights, constants, inputs):
        gradients, outputs = on_devices(weights, constants, *cut(inputs))
        return merge(outputs), gradients

    return step


def make_optimizer(mesh, learning_rate):
    """That of the plan: the first states of weights, and a function of weights, gradients, states and
    the number of the step, from 1. Each device updates what it stores, and has the states of that."""
    num_states = {"sgd": 0, "momentum": 1, "adam": 2}[OPTIMIZER]

    def updated(w, g, states, t):
        if OPTIMIZER == "sgd":
            return w - learning_rate * g, ()
        if OPTIMIZER == "momentum":
            v = 0.9 * states[0] + g
            return w - learning_rate * v, (v,)
        m, v = 0.9 * states[0] + 0.1 * g, 0.999 * states[1] + 0.001 * g * g
        scale = jnp.sqrt(v / (1 - 0.999**t)) + 1e-8
        return w - learning_rate * (m / (1 - 0.9**t)) / scale, (m, v)

    def update(weights, gradients, states, t):
        new = {name: updated(w, gradients[name], states[name], t) for name, w in weights.items()}
        return {name: w for name, (w, _) in new.items()}, {name: s for name, (_, s) in new.items()}

    at = {name: placed(mesh, name) for name, leaf in LEAVES.items() if leaf.is_trained}
    states = {
        name: tuple(
            jnp.zeros(LEAVES[name].shape, float_type(LEAVES[name].dtype), device=sharding)
            for _ in range(num_states)
        )
        for name, sharding in at.items()
    }
    shardings = (at, {name: (sharding,) * num_states for name, sharding in at.items()})
    return states, jax.jit(update, out_shardings=shardings, donate_argnums=(0, 2))


def random_inputs(seed=0):
    generator = np.random.default_rng(seed)

    def draw(of):
        if jnp.issubdtype(of.dtype, jnp.floating):
            return generator.standard_normal(of.shape).astype(float_type(of.dtype))
        return generator.integers(0, of.limit, of.shape).astype(of.dtype)

    return {name: draw(of) for name, of in INPUTS.items()}


def reference_step(inputs):
    """Outputs and gradients of the model as it was, in full precision."""
    weights, constants = (
        {
            name: jnp.asarray(initial(name)).astype(float_type(leaf.dtype))
            for name, leaf in LEAVES.items()
            if leaf.is_trained == is_trained
        }
        for is_trained in (True, False)
    )

    def run(weights, constants, inputs):
        outputs = Reference({**constants, **weights}).forward(**inputs)
        return loss_of(outputs), outputs

    with jax.default_matmul_precision("highest"):
        if LOSS is None:
            return jax.jit(run)(weights, constants, inputs)[1], {}
        step = jax.jit(jax.value_and_grad(run, has_aux=True))
        (_, outputs), gradients = step(weights, constants, inputs)
    return outputs, gradients


def first_step(mesh, inputs):
    """Outputs and gradients of the plan, in full precision."""
    with jax.default_matmul_precision("highest"):
        leaves = put_leaves(mesh, True), put_leaves(mesh, False)
        return make_step(mesh)(*leaves, put_inputs(mesh, inputs))


def check(step, reference):
    """How far outputs and gradients are off those of the model as it was before the plan: for each,
    |difference| / |expected| in the Euclidean norm, or |difference| where next to nothing is expected."""
    (outputs, gradients), (expected, expected_gradients) = step, reference

    def norm(x):
        return float(np.linalg.norm(np.asarray(x, np.float64)))

    # What rounding makes of a gradient that is zero, such as that of a bias before a softmax.
    largest = max((norm(g) for g in expected_gradients.values()), default=0.0)
    errors = {}

    def compare(name, value, of, floor):
        off = norm(np.asarray(value, np.float64) - np.asarray(of, np.float64))
        errors[name] = off / max(norm(of), floor, 1e-30)

    for name in OUTPUTS:
        compare(f"output {name}", outputs[name], expected[name], 1e-6)
    for name, of in expected_gradients.items():
        compare(f"gradient {name}", gradients[name], of, 1e-3 * largest)
    return errors


def furthest_off(errors):
    """The largest: its name and by how much."""
    error, name = max(((math.inf if e != e else e, name) for name, e in errors.items()))
    return name, error


def main():
    global FLOAT
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--check", action="store_true", help="compare a step with the model as it was")
    parser.add_argument("--train", type=int, default=0, metavar="STEPS", help="train on a random batch")
    parser.add_argument("--learning_rate", type=float, default=0.01)
    flags = parser.parse_args()
    if not flags.check and flags.train <= 0:
        parser.error("one of --check and --train=STEPS is needed")
    if flags.train > 0 and LOSS is None:
        parser.error("the plan is for inference: there is nothing to train")
    mesh = make_mesh()
    failed = False
    if flags.check:
        inputs = random_inputs()
        name, error = furthest_off(check(first_step(mesh, inputs), reference_step(inputs)))
        says = f"the furthest off is {name} by {error:.2g}"
        if not error <= TOLERANCE:  # Is it rounding?
            FLOAT = jnp.float64
            inputs = random_inputs()
            name, in_float64 = furthest_off(check(first_step(mesh, inputs), reference_step(inputs)))
            FLOAT = jnp.float32
            says += f" (in float64 {name} by {in_float64:.2g})"
            failed = not in_float64 <= FLOAT64_TOLERANCE
        print(f"{'DIFFERS' if failed else 'equal'}: of outputs and gradients {says}", flush=True)
    if flags.train > 0:
        weights, constants = put_leaves(mesh, True), put_leaves(mesh, False)
        inputs = put_inputs(mesh, random_inputs())
        step = make_step(mesh)
        states, update = make_optimizer(mesh, flags.learning_rate)
        for t in range(flags.train):
            outputs, gradients = step(weights, constants, inputs)
            weights, states = update(weights, gradients, states, t + 1)
            print(f"step {t}: loss {float(outputs[LOSS]):.6f}", flush=True)
    sys.exit(1 if failed else 0)
