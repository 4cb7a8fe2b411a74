# What each operator is in JAX, on whole tensors or on the part of them that a device has. One
# function an operator, by its name in pcg/ir/operator.h; operands come first, attributes after. An
# exported file has a function of one `return` in line, and of the others those that it calls.
# `first` is the first index of a part that a device has of a dim; exports give it only if the dim is
# split.

import math

import jax
import jax.numpy as jnp
import numpy as np


# Contractions.


def matmul(a, b):
    return a @ b


def linear(x, weight, bias=None, activation=0):
    functions = [None, jax.nn.relu, gelu_of, jnp.tanh, jax.nn.sigmoid, jax.nn.silu]
    y = x @ weight if bias is None else x @ weight + bias
    return functions[activation](y) if activation else y


def gelu_of(x):
    return jax.nn.gelu(x, approximate=False)


def pairs(padding):
    """All that goes before dims, then all that goes behind, as a pair for each dim."""
    n = len(padding) // 2
    return [(padding[i], padding[n + i]) for i in range(n)]


def conv1d(x, weight, stride, padding, dilation, groups):
    return convolution(x, weight, stride, pairs(padding), dilation, groups)


def conv2d(x, weight, stride, padding, dilation, groups):
    return convolution(x, weight, stride, pairs(padding), dilation, groups)


def conv3d(x, weight, stride, padding, dilation, groups):
    return convolution(x, weight, stride, pairs(padding), dilation, groups)


def convolution(x, weight, stride, padding, dilation, groups, spread=None):
    letters = "DHW"[-len(stride) :]
    names = ("NC" + letters, "OI" + letters, "NC" + letters)
    return jax.lax.conv_general_dilated(
        x,
        weight,
        stride,
        padding,
        lhs_dilation=spread,
        rhs_dilation=dilation,
        dimension_numbers=names,
        feature_group_count=groups,
    )


def conv_transpose(x, weight, stride, padding, dilation, output_padding, groups):
    n = len(stride)
    # [in, out of a group, ..] as the kernel of the convolution whose gradient this is.
    w = weight.reshape((groups, weight.shape[0] // groups) + weight.shape[1:])
    w = jnp.flip(jnp.swapaxes(w, 1, 2), range(3, 3 + n))
    w = w.reshape((-1,) + w.shape[2:])
    spans = [d * (k - 1) for d, k in zip(dilation, weight.shape[2:])]
    around = [
        (s - begin, s - end + extra)
        for s, (begin, end), extra in zip(spans, pairs(padding), output_padding)
    ]
    return convolution(x, w, [1] * n, around, dilation, groups, spread=stride)


# Elementwise.


def add(a, b):
    return a + b


def sub(a, b):
    return a - b


def mul(a, b):
    return a * b


def div(a, b):
    return a / b


def maximum(a, b):
    return jnp.maximum(a, b)


def minimum(a, b):
    return jnp.minimum(a, b)


def pow(a, b):
    return jnp.power(a, b)


def equal(a, b):
    return jnp.equal(a, b)


def less(a, b):
    return jnp.less(a, b)


def less_equal(a, b):
    return jnp.less_equal(a, b)


def scale(x, factor):
    return x * factor


def relu(x):
    return jax.nn.relu(x)


def gelu(x):
    return jax.nn.gelu(x, approximate=False)


def gelu_tanh(x, slope, cubic):
    return 0.5 * x * (1 + jnp.tanh(slope * (x + cubic * x * x * x)))


def tanh(x):
    return jnp.tanh(x)


def sigmoid(x):
    return jax.nn.sigmoid(x)


def exp(x):
    return jnp.exp(x)


def swish(x):
    return jax.nn.silu(x)


def hard_swish(x):
    return x * jnp.clip(x / 6 + 0.5, 0, 1)


def hard_sigmoid(x, alpha, beta):
    return jnp.clip(x * alpha + beta, 0, 1)


def leaky_relu(x, alpha):
    return jnp.where(x < 0, x * alpha, x)


def elu(x, alpha):
    return jax.nn.elu(x, alpha)


def softplus(x):
    return jax.nn.softplus(x)


def clip(x, min, max):
    return jnp.clip(x, min, max)


def log(x):
    return jnp.log(x)


def sqrt(x):
    return jnp.sqrt(x)


def reciprocal(x):
    return 1 / x


def erf(x):
    return jax.lax.erf(x)


def sin(x):
    return jnp.sin(x)


def cos(x):
    return jnp.cos(x)


def atan(x):
    return jnp.arctan(x)


def abs(x):
    return jnp.abs(x)


def sign(x):
    return jnp.sign(x)


def floor(x):
    return jnp.floor(x)


def ceil(x):
    return jnp.ceil(x)


def round(x):
    return jnp.round(x)


def logical_not(x):
    return jnp.logical_not(x)


def cast(x, to):
    return x.astype(to)


def where(condition, a, b):
    return jnp.where(condition.astype(bool), a, b)


def dropout(x, seed, rate, salt, first=None, shape=None):
    """Which elements stay depends on their place in all of the tensor, [first ..] of `shape`."""
    number = jnp.zeros((), jnp.int64)
    for dim, size in enumerate(x.shape):
        place = jnp.arange(size) + (first[dim] if first else 0)
        number = number[..., None] * (shape[dim] if shape else size) + place
    return x * (pseudo_random(seed + salt, number) >= rate) / (1 - rate)


def pseudo_random(a, b):
    """Numbers in [0, 1), a fixed function of two integers (HashCombine of pcg/support/hash.h)."""

    def mixed(x):
        x = x + jnp.uint64(0x9E3779B97F4A7C15)
        x = (x ^ (x >> 30)) * jnp.uint64(0xBF58476D1CE4E5B9)
        x = (x ^ (x >> 27)) * jnp.uint64(0x94D049BB133111EB)
        return x ^ (x >> 31)

    x = mixed(mixed(a.astype(jnp.uint64)) ^ b.astype(jnp.uint64))
    return (x >> 40).astype(FLOAT) * 2.0**-24


# Normalisation.


def softmax(x, axis):
    return jax.nn.softmax(x, axis)


def log_softmax(x, axis):
    return jax.nn.log_softmax(x, axis)


def layer_norm(x, weight, bias, epsilon):
    mean, variance = x.mean(-1, keepdims=True), x.var(-1, keepdims=True)
    return (x - mean) / jnp.sqrt(variance + epsilon) * weight + bias


def rms_norm(x, weight, epsilon):
    return x / jnp.sqrt(jnp.mean(x * x, -1, keepdims=True) + epsilon) * weight


def per_channel(x, of):
    return x.reshape((1, -1) + (1,) * (of.ndim - 2))


def group_norm(x, weight, bias, groups, epsilon):
    y = x.reshape(x.shape[0], groups, -1)
    y = (y - y.mean(-1, keepdims=True)) / jnp.sqrt(y.var(-1, keepdims=True) + epsilon)
    return y.reshape(x.shape) * per_channel(weight, x) + per_channel(bias, x)


def batch_norm(x, weight, bias, mean, variance, epsilon):
    weight = weight / jnp.sqrt(variance + epsilon)
    return (x - per_channel(mean, x)) * per_channel(weight, x) + per_channel(bias, x)


def batch_norm_training(x, weight, bias, epsilon):
    over = tuple(i for i in range(x.ndim) if i != 1)
    mean, variance = x.mean(over), x.var(over)
    return batch_norm(x, weight, bias, mean, variance, epsilon), mean, variance


# Pooling and reduction.


def windows(x, start, reduce, kernel, stride, padding):
    return jax.lax.reduce_window(
        x, start, reduce, (1, 1, *kernel), (1, 1, *stride), [(0, 0), (0, 0), *pairs(padding)]
    )


def max_pool(x, kernel, stride, padding):
    return windows(x, -jnp.inf, jax.lax.max, kernel, stride, padding)


def avg_pool(x, kernel, stride, padding, count_include_pad):
    total = windows(x, 0.0, jax.lax.add, kernel, stride, padding)
    if count_include_pad or not any(padding):
        return total / math.prod(kernel)
    return total / windows(jnp.ones_like(x[:1, :1]), 0.0, jax.lax.add, kernel, stride, padding)


def adaptive_avg_pool(x, output):
    for dim, size in enumerate(output, 2):
        full = x.shape[dim]
        bounds = [(i * full // size, -(-(i + 1) * full // size)) for i in range(size)]
        parts = [jax.lax.slice_in_dim(x, a, b, axis=dim).mean(dim, keepdims=True) for a, b in bounds]
        x = jnp.concatenate(parts, dim)
    return x


def reduce_sum(x, axes, keepdims):
    return jnp.sum(x, tuple(axes), keepdims=bool(keepdims))


def reduce_mean(x, axes, keepdims):
    return jnp.mean(x, tuple(axes), keepdims=bool(keepdims))


def reduce_max(x, axes, keepdims):
    return jnp.max(x, tuple(axes), keepdims=bool(keepdims))


def reduce_min(x, axes, keepdims):
    return jnp.min(x, tuple(axes), keepdims=bool(keepdims))


def reduce_prod(x, axes, keepdims):
    return jnp.prod(x, tuple(axes), keepdims=bool(keepdims))


def argmax(x, axis, keepdims, last):
    if last:
        return x.shape[axis] - 1 - jnp.argmax(jnp.flip(x, axis), axis, keepdims=bool(keepdims))
    return jnp.argmax(x, axis, keepdims=bool(keepdims))


def argmin(x, axis, keepdims, last):
    return argmax(-x, axis, keepdims, last)


def topk(x, k, axis, largest):
    # Stable: of equal elements the first come first.
    order = jnp.argsort(-x if largest else x, axis=axis, stable=True)
    order = jax.lax.slice_in_dim(order, 0, k, axis=axis % x.ndim)
    return jnp.take_along_axis(x, order, axis), order


def cumsum(x, axis, exclusive, reverse):
    y = jnp.flip(x, axis) if reverse else x
    y = jnp.cumsum(y, axis) - y if exclusive else jnp.cumsum(y, axis)
    return jnp.flip(y, axis) if reverse else y


# Layout.


def transpose(x, perm):
    return x.transpose(perm)


def reshape(x, shape):
    return x.reshape(shape)


def concat(*parts, axis):
    return jnp.concatenate(parts, axis)


def split(x, axis, sizes):
    return jnp.split(x, np.cumsum(sizes)[:-1], axis)


def slice(x, starts, sizes, steps):
    for dim, (start, size, step) in enumerate(zip(starts, sizes, steps)):
        if step > 0:
            x = jax.lax.slice_in_dim(x, start, start + (size - 1) * step + 1, step, dim)
        else:
            x = jnp.take(x, jnp.arange(size) * step + start, axis=dim)
    return x


def pad(x, padding, mode, value):
    around = pairs(padding)
    if mode == 0:
        return jax.lax.pad(x, jnp.asarray(value, x.dtype), [(a, b, 0) for a, b in around])
    return jnp.pad(x, around, mode=["", "reflect", "edge", "wrap"][mode])


def expand(x, shape):
    return jnp.broadcast_to(x, shape)


def trilu(x, upper, k, first=(0, 0)):
    rows = jnp.arange(x.shape[-2])[:, None] + first[0]
    columns = jnp.arange(x.shape[-1]) + first[1]
    return jnp.where(columns - rows >= k if upper else columns - rows <= k, x, jnp.zeros_like(x))


# Look-ups.


def here(indices, first, size):
    """Indices into the part [first, first + size) of a dim, and which of them lie in it."""
    indices = indices - first
    inside = (indices >= 0) & (indices < size)
    return jnp.where(inside, indices, 0), inside


def embedding(table, indices, first=None):
    if first is None:
        return jnp.take(table, indices, axis=0)
    indices, inside = here(indices, first, table.shape[0])
    return jnp.take(table, indices, axis=0) * inside[..., None]


def embedding_bag(table, indices, mean, first=None):
    rows = embedding(table, indices, first)
    return rows.mean(1) if mean else rows.sum(1)


def gather(x, indices, axis, first=None):
    axis = axis % x.ndim
    if first is None:
        return jnp.take(x, indices, axis=axis)
    indices, inside = here(indices, first, x.shape[axis])
    inside = inside.reshape(inside.shape + (1,) * (x.ndim - axis - 1))
    return jnp.take(x, indices, axis=axis) * inside.astype(x.dtype)


def gather_elements(x, indices, axis, first=None):
    axis, inside = axis % x.ndim, 1
    if first is not None:
        indices, inside = here(indices, first, x.shape[axis])
    for dim, size in enumerate(indices.shape):
        x = x if dim == axis else jax.lax.slice_in_dim(x, 0, size, axis=dim)
    return jnp.take_along_axis(x, indices, axis) * inside


def gather_matmul(x, weights, indices, first=None):
    inside = 1
    if first is not None:
        indices, inside = here(indices, first, weights.shape[0])
        inside = inside[..., None]
    order = jnp.argsort(indices.reshape(-1), stable=True)
    rows = x.reshape(-1, x.shape[-1])[order]
    y = jax.lax.ragged_dot(rows, weights, jnp.bincount(indices.reshape(-1), length=len(weights)))
    return y[jnp.argsort(order)].reshape(indices.shape + weights.shape[2:]) * inside


def gather_rows(x, indices, first=None):
    inside = 1
    if first is not None:
        indices, inside = here(indices, first, x.shape[-2])
        inside = inside[..., None]
    flat = indices.reshape(x.shape[:-2] + (-1, 1))
    y = jnp.take_along_axis(x, flat, axis=-2)
    return y.reshape(indices.shape + x.shape[-1:]) * inside


def gather_sum(x, indices, weights, first=None):
    return (gather_rows(x, indices, first) * weights[..., None]).sum(-2)


def scatter_elements(x, indices, updates, axis, reduction):
    axis = axis % x.ndim
    places = list(jnp.meshgrid(*(jnp.arange(n) for n in indices.shape), indexing="ij"))
    number, places[axis] = places[axis] + 1, indices
    if reduction == 0:
        # Of equal indices the last wins, which JAX does not promise: the others are dropped.
        last = jnp.zeros(x.shape, number.dtype).at[tuple(places)].max(number)[tuple(places)]
        places[axis] = jnp.where(last == number, indices, x.shape[axis])
        return x.at[tuple(places)].set(updates, mode="drop")
    if reduction == 1:
        return x.at[tuple(places)].add(updates)
    # What each element meets: JAX has no gradients of the other scatters.
    sizes = [n if d == axis else indices.shape[d] for d, n in enumerate(x.shape)]
    y = jnp.moveaxis(jax.lax.slice(x, [0] * x.ndim, sizes), axis, -1)
    indices, updates = (jnp.moveaxis(t, axis, -1)[..., None, :] for t in (indices, updates))
    hits = indices == jnp.arange(y.shape[-1])[:, None]
    if reduction == 2:
        y = y * jnp.where(hits, updates, 1).prod(-1)
    else:
        met = jnp.where(hits, updates, y[..., None])
        y = jnp.maximum(y, met.max(-1)) if reduction == 3 else jnp.minimum(y, met.min(-1))
    return jax.lax.dynamic_update_slice(x, jnp.moveaxis(y, -1, axis), [0] * x.ndim)


def one_hot(indices, depth, axis):
    return jnp.moveaxis((indices[..., None] == jnp.arange(depth)).astype(FLOAT), -1, axis)


# Attention.


def places(index, size, stripes):
    """Where in the sequence what has these indices is, in the order of so many stripes."""
    each = size // max(stripes, 1)
    return index % each * stripes + index // each if stripes > 1 else index


def sees(q, k, causal, window, first, queries):
    """Which keys a query sees: query s of [first, ..) of all `queries`, if causal, those up to
    s + keys - queries; queries and keys are in the order of so many stripes."""
    queries = q.shape[2] if queries is None else queries
    place = places(jnp.arange(q.shape[2]) + first, queries, causal)
    place = place[:, None] + k.shape[2] - queries
    key = places(jnp.arange(k.shape[2]), k.shape[2], causal)
    seen = key <= place if causal else jnp.ones((q.shape[2], k.shape[2]), bool)
    return seen & (key > place - window) if window else seen


def for_queries(x, q):
    """Keys or values, once for each head of the queries."""
    return x if x.shape[1] == q.shape[1] else jnp.repeat(x, q.shape[1] // x.shape[1], axis=1)


def attention(q, k, v, mask=None, scale=1.0, causal=0, first=0, queries=None):
    scores = scale * (q @ for_queries(k, q).mT)
    scores = scores if mask is None else scores + mask
    if causal:
        scores = jnp.where(sees(q, k, causal, 0, first, queries), scores, -jnp.inf)
    return jax.nn.softmax(scores, -1) @ for_queries(v, q)


def capped_attention(q, k, v, mask=None, scale=1.0, cap=1.0, causal=0, first=0, queries=None):
    scores = cap * jnp.tanh(scale * (q @ for_queries(k, q).mT))
    scores = scores if mask is None else scores + mask
    scores = jnp.where(sees(q, k, causal, 0, first, queries), scores, -jnp.inf)
    return jax.nn.softmax(scores, -1) @ for_queries(v, q)


def sink_attention(q, k, v, sinks, scale=1.0, causal=0, window=0, first=0, queries=None):
    scores = scale * (q @ for_queries(k, q).mT)
    scores = jnp.where(sees(q, k, causal, window, first, queries), scores, -jnp.inf)
    sinks = jnp.broadcast_to(sinks[:, None, None], scores.shape[:3] + (1,))
    return jax.nn.softmax(jnp.concatenate([scores, sinks], -1), -1)[..., :-1] @ for_queries(v, q)


def rotary(x, cos, sin, interleaved):
    if interleaved:
        a, b = x[..., ::2], x[..., 1::2]
        return jnp.stack([a * cos - b * sin, b * cos + a * sin], -1).reshape(x.shape)
    a, b = jnp.split(x, 2, -1)
    return jnp.concatenate([a * cos - b * sin, b * cos + a * sin], -1)


# Recurrent cells and mixtures of experts.


def lstm_cell(x, state):
    i, f, g, o = (x[..., n, :] for n in range(4))
    c = jax.nn.sigmoid(f) * state + jax.nn.sigmoid(i) * jnp.tanh(g)
    return jax.nn.sigmoid(o) * jnp.tanh(c), c


def gru_cell(x, p, state):
    r = jax.nn.sigmoid(x[..., 0, :] + p[..., 0, :])
    z = jax.nn.sigmoid(x[..., 1, :] + p[..., 1, :])
    return (1 - z) * jnp.tanh(x[..., 2, :] + r * p[..., 2, :]) + z * state


def top2_gating(gates, seed, capacity, random, salt, first=0):
    """GShard's algorithm 1: what of each token goes to each slot, and the auxiliary loss."""
    groups, tokens, experts = gates.shape
    chosen = jnp.argsort(-gates, axis=-1, stable=True)[..., :2]
    g1, g2 = jnp.moveaxis(jnp.take_along_axis(gates, chosen, -1), -1, 0)
    to1, to2 = jnp.moveaxis((chosen[..., None] == jnp.arange(experts)).astype(gates.dtype), 2, 0)
    p1 = ((jnp.cumsum(to1, 1) - to1) * to1).sum(-1)
    p2 = ((to1.sum(1, keepdims=True) + jnp.cumsum(to2, 1) - to2) * to2).sum(-1)
    w1, w2 = g1 / (g1 + g2), g2 / (g1 + g2)
    if random:
        number = jnp.arange(groups * tokens).reshape(groups, tokens) + first * tokens
        w2 = w2 * (pseudo_random(seed + salt, number) < 2 * w2)
    slot = jnp.arange(capacity)
    y = sum(
        (w[..., None] * to)[..., None] * (p[..., None] == slot)[..., None, :]
        for w, to, p in ((w1, to1, p1), (w2, to2, p2))
    )
    return y, (to1.sum(1) / tokens * (gates.sum(1) / tokens)).sum(-1)


def topk_routing(scores, bias=None, k=1, capacity=1):
    """Weights and slots of each token's k experts, and the tokens in each expert's slots."""
    by = scores if bias is None else scores + bias
    expert = jnp.argsort(-by, axis=-1, stable=True)[..., :k]
    *groups, tokens, experts = scores.shape
    chosen = (expert[..., None] == jnp.arange(experts)).sum(-2)
    place = jnp.take_along_axis(jnp.cumsum(chosen, -2) - chosen, expert, -1)
    kept = place < capacity
    score = jnp.take_along_axis(scores, expert, -1)
    weights = jnp.where(kept, score / score.sum(-1, keepdims=True), 0)
    slots = jnp.where(kept, expert * capacity + place, 0)
    # Those without a slot go to one behind the last, which is cut off.
    target = jnp.where(kept, slots, experts * capacity).reshape(-1, tokens * k)
    token = jnp.broadcast_to(jnp.arange(tokens)[:, None], expert.shape).reshape(target.shape)
    table = jnp.zeros((len(target), experts * capacity + 1), token.dtype)
    table = table.at[jnp.arange(len(target))[:, None], target].set(token)
    return weights, slots, table[:, :-1].reshape(*groups, experts, capacity)


# Losses.


def cross_entropy(logits, labels):
    return -jnp.take_along_axis(jax.nn.log_softmax(logits, -1), labels[..., None], -1).mean()


def mse(a, b):
    return jnp.mean((a - b) ** 2)


def binary_cross_entropy(logits, targets):
    return jnp.mean(jax.nn.softplus(logits) - logits * targets)
