# What each operator is in PyTorch, on whole tensors or on the part of them that a device has. One
# function an operator, by its name in pcg/ir/operator.h; operands come first, attributes after. An
# exported file has a function of one `return` in line, and of the others those that it calls.
# `first` is the first index of a part that a device has of a dim; exports give it only if the dim is
# split.

import math

import torch
import torch.nn.functional as F


# Contractions.


def matmul(a, b):
    return a @ b


def linear(x, weight, bias=None, activation=0):
    functions = [None, F.relu, F.gelu, torch.tanh, torch.sigmoid, F.silu]
    y = F.linear(x, weight.mT, bias)
    return functions[activation](y) if activation else y


def conv1d(x, weight, stride, padding, dilation, groups):
    return F.conv1d(padded(x, padding), weight, None, stride, 0, dilation, groups)


def conv2d(x, weight, stride, padding, dilation, groups):
    return F.conv2d(padded(x, padding), weight, None, stride, 0, dilation, groups)


def conv3d(x, weight, stride, padding, dilation, groups):
    return F.conv3d(padded(x, padding), weight, None, stride, 0, dilation, groups)


def conv_transpose(x, weight, stride, padding, dilation, output_padding, groups):
    n = len(stride)
    function = [F.conv_transpose1d, F.conv_transpose2d, F.conv_transpose3d][n - 1]
    # Without padding, with what output_padding may need behind, then cut.
    y = function(x, weight, None, stride, 0, 0, groups, dilation)
    return padded(y, [-p for p in padding[:n]] + [o - p for o, p in zip(output_padding, padding[n:])])


def padded(x, padding, value=0.0):
    """x with its last dims padded: all that goes before them, then all that goes behind."""
    n = len(padding) // 2
    pairs = [p for i in reversed(range(n)) for p in (padding[i], padding[n + i])]
    return F.pad(x, pairs, value=value) if any(pairs) else x


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
    return torch.maximum(a, b)


def minimum(a, b):
    return torch.minimum(a, b)


def pow(a, b):
    return torch.pow(a, b)


def equal(a, b):
    return torch.eq(a, b)


def less(a, b):
    return torch.lt(a, b)


def less_equal(a, b):
    return torch.le(a, b)


def scale(x, factor):
    return x * factor


def relu(x):
    return F.relu(x)


def gelu(x):
    return F.gelu(x)


def gelu_tanh(x, slope, cubic):
    return 0.5 * x * (1 + torch.tanh(slope * (x + cubic * x * x * x)))


def tanh(x):
    return torch.tanh(x)


def sigmoid(x):
    return torch.sigmoid(x)


def exp(x):
    return torch.exp(x)


def swish(x):
    return F.silu(x)


def hard_swish(x):
    return F.hardswish(x)


def hard_sigmoid(x, alpha, beta):
    return torch.clamp(x * alpha + beta, 0, 1)


def leaky_relu(x, alpha):
    return F.leaky_relu(x, alpha)


def elu(x, alpha):
    return F.elu(x, alpha)


def softplus(x):
    return F.softplus(x)


def clip(x, min, max):
    return torch.clamp(x, min, max)


def log(x):
    return torch.log(x)


def sqrt(x):
    return torch.sqrt(x)


def reciprocal(x):
    return torch.reciprocal(x)


def erf(x):
    return torch.erf(x)


def sin(x):
    return torch.sin(x)


def cos(x):
    return torch.cos(x)


def atan(x):
    return torch.atan(x)


def abs(x):
    return torch.abs(x)


def sign(x):
    return torch.sign(x)


def floor(x):
    return torch.floor(x)


def ceil(x):
    return torch.ceil(x)


def round(x):
    return torch.round(x)


def logical_not(x):
    return torch.logical_not(x)


def cast(x, to):
    return x.to(to)


def where(condition, a, b):
    return torch.where(condition.bool(), a, b)


def dropout(x, seed, rate, salt, first=None, shape=None):
    """Which elements stay depends on their place in all of the tensor, [first ..] of `shape`."""
    number = torch.zeros((), dtype=torch.int64, device=x.device)
    for dim, size in enumerate(x.shape):
        place = torch.arange(size, device=x.device) + (first[dim] if first else 0)
        number = number[..., None] * (shape[dim] if shape else size) + place
    return x * (pseudo_random(seed + salt, number) >= rate) / (1 - rate)


def pseudo_random(a, b):
    """Numbers in [0, 1), a fixed function of two integers (HashCombine of pcg/support/hash.h)."""

    def mixed(x):
        x = x - 0x61C8864680B583EB
        x = (x ^ ((x >> 30) & 0x3FFFFFFFF)) * -0x40A7B892E31B1A47
        x = (x ^ ((x >> 27) & 0x1FFFFFFFFF)) * -0x6B2FB644ECCEEE15
        return x ^ ((x >> 31) & 0x1FFFFFFFF)

    return ((mixed(mixed(a) ^ b) >> 40) & 0xFFFFFF).to(FLOAT) * 2.0**-24


# Normalisation.


def softmax(x, axis):
    return torch.softmax(x, axis)


def log_softmax(x, axis):
    return torch.log_softmax(x, axis)


def layer_norm(x, weight, bias, epsilon):
    return F.layer_norm(x, x.shape[-1:], weight, bias, epsilon)


def rms_norm(x, weight, epsilon):
    return F.rms_norm(x, x.shape[-1:], weight, epsilon)


def group_norm(x, weight, bias, groups, epsilon):
    return F.group_norm(x, groups, weight, bias, epsilon)


def batch_norm(x, weight, bias, mean, variance, epsilon):
    shape = [1, -1] + [1] * (x.dim() - 2)
    weight = weight / torch.sqrt(variance + epsilon)
    return (x - mean.reshape(shape)) * weight.reshape(shape) + bias.reshape(shape)


def batch_norm_training(x, weight, bias, epsilon):
    over = [i for i in range(x.dim()) if i != 1]
    variance, mean = torch.var_mean(x, over, correction=0)
    return batch_norm(x, weight, bias, mean, variance, epsilon), mean, variance


# Pooling and reduction.


def max_pool(x, kernel, stride, padding):
    function = [F.max_pool1d, F.max_pool2d, F.max_pool3d][len(kernel) - 1]
    return function(padded(x, padding, -math.inf), kernel, stride)


def avg_pool(x, kernel, stride, padding, count_include_pad):
    function = [F.avg_pool1d, F.avg_pool2d, F.avg_pool3d][len(kernel) - 1]
    y = function(padded(x, padding), kernel, stride)
    if count_include_pad or not any(padding):
        return y
    return y / function(padded(torch.ones_like(x[:1, :1]), padding), kernel, stride)


def adaptive_avg_pool(x, output):
    function = [F.adaptive_avg_pool1d, F.adaptive_avg_pool2d, F.adaptive_avg_pool3d]
    return function[len(output) - 1](x, output)


def reduce_sum(x, axes, keepdims):
    return torch.sum(x, axes, bool(keepdims))


def reduce_mean(x, axes, keepdims):
    return torch.mean(x, axes, bool(keepdims))


def reduce_max(x, axes, keepdims):
    return torch.amax(x, axes, bool(keepdims))


def reduce_min(x, axes, keepdims):
    return torch.amin(x, axes, bool(keepdims))


def reduce_prod(x, axes, keepdims):
    for axis in sorted((a % x.dim() for a in axes), reverse=True):
        x = torch.prod(x, axis, bool(keepdims))
    return x


def argmax(x, axis, keepdims, last):
    if last:
        return x.shape[axis] - 1 - torch.argmax(x.flip(axis), axis, bool(keepdims))
    return torch.argmax(x, axis, bool(keepdims))


def argmin(x, axis, keepdims, last):
    return argmax(-x, axis, keepdims, last)


def topk(x, k, axis, largest):
    # Stable: of equal elements the first come first.
    values, indices = torch.sort(x, dim=axis, descending=bool(largest), stable=True)
    return values.narrow(axis, 0, k), indices.narrow(axis, 0, k)


def cumsum(x, axis, exclusive, reverse):
    y = x.flip(axis) if reverse else x
    y = torch.cumsum(y, axis) - y if exclusive else torch.cumsum(y, axis)
    return y.flip(axis) if reverse else y


# Layout.


def transpose(x, perm):
    return x.permute(perm)


def reshape(x, shape):
    return x.reshape(shape)


def concat(*parts, axis):
    return torch.cat(parts, axis)


def split(x, axis, sizes):
    return torch.split(x, sizes, axis)


def slice(x, starts, sizes, steps):
    for dim, (start, size, step) in enumerate(zip(starts, sizes, steps)):
        index = torch.arange(size, device=x.device) * step + start
        if size != x.shape[dim] or start != 0 or step != 1:
            x = x.index_select(dim, index)
    return x


def pad(x, padding, mode, value):
    if mode == 0:
        return padded(x, padding, value)
    for dim, (before, behind) in enumerate(zip(padding[: x.dim()], padding[x.dim() :])):
        size = x.shape[dim]
        index = torch.arange(-before, size + behind, device=x.device)
        if mode == 1:
            index = torch.where(index < size, index.abs(), 2 * (size - 1) - index)
        else:
            index = index.clamp(0, size - 1) if mode == 2 else index % size
        if before or behind:
            x = x.index_select(dim, index)
    return x


def expand(x, shape):
    return x.expand(shape)


def trilu(x, upper, k, first=(0, 0)):
    rows = torch.arange(x.shape[-2], device=x.device)[:, None] + first[0]
    columns = torch.arange(x.shape[-1], device=x.device) + first[1]
    kept = columns - rows >= k if upper else columns - rows <= k
    return torch.where(kept, x, torch.zeros_like(x))


# Look-ups.


def here(indices, first, size):
    """Indices into the part [first, first + size) of a dim, and which of them lie in it."""
    indices = indices - first
    inside = (indices >= 0) & (indices < size)
    return torch.where(inside, indices, 0), inside


def embedding(table, indices, first=None):
    if first is None:
        return F.embedding(indices, table)
    indices, inside = here(indices, first, table.shape[0])
    return F.embedding(indices, table) * inside[..., None]


def embedding_bag(table, indices, mean, first=None):
    rows = embedding(table, indices, first)
    return rows.mean(1) if mean else rows.sum(1)


def gather(x, indices, axis, first=None):
    axis = axis % x.dim()
    inside = None
    if first is not None:
        indices, inside = here(indices, first, x.shape[axis])
    y = x.index_select(axis, indices.reshape(-1))
    y = y.reshape(x.shape[:axis] + indices.shape + x.shape[axis + 1 :])
    if inside is None:
        return y
    return y * inside.reshape(inside.shape + (1,) * (x.dim() - axis - 1)).to(y.dtype)


def gather_elements(x, indices, axis, first=None):
    if first is None:
        return torch.gather(x, axis, indices.long())
    indices, inside = here(indices, first, x.shape[axis])
    return torch.gather(x, axis, indices.long()) * inside


def gather_matmul(x, weights, indices, first=None):
    if first is not None:
        indices, inside = here(indices, first, weights.shape[0])
    rows = [x[indices == e] @ w for e, w in enumerate(weights)]
    order = torch.argsort(indices.reshape(-1), stable=True)
    y = torch.empty_like(order)
    y[order] = torch.arange(order.numel(), device=x.device)
    y = torch.cat(rows)[y].reshape(indices.shape + weights.shape[2:])
    return y if first is None else y * inside[..., None]


def gather_rows(x, indices, first=None):
    inside = None
    if first is not None:
        indices, inside = here(indices, first, x.shape[-2])
    flat = indices.reshape(x.shape[:-2] + (-1,)).long()
    y = torch.gather(x, -2, flat[..., None].expand(flat.shape + x.shape[-1:]))
    y = y.reshape(indices.shape + x.shape[-1:])
    return y if inside is None else y * inside[..., None]


def gather_sum(x, indices, weights, first=None):
    return (gather_rows(x, indices, first) * weights[..., None]).sum(-2)


def scatter_elements(x, indices, updates, axis, reduction):
    names = [None, "sum", "prod", "amax", "amin"]
    indices = indices.long()
    if reduction > 0:
        return torch.scatter_reduce(x, axis, indices, updates, names[reduction])
    # Of equal indices the last wins, which torch.scatter promises neither of values nor of gradients:
    # the others go to one behind the last, which is cut off.
    axis, size = axis % x.dim(), x.shape[axis]
    number = torch.arange(1, 1 + indices.shape[axis], device=x.device)
    number = number.reshape([-1] + [1] * (x.dim() - 1 - axis)).expand_as(indices)
    last = torch.zeros(x.shape, dtype=torch.long, device=x.device)
    last = last.scatter_reduce(axis, indices, number, "amax").gather(axis, indices)
    y = torch.cat([x, x.narrow(axis, 0, 1)], axis)
    return y.scatter(axis, torch.where(last == number, indices, size), updates).narrow(axis, 0, size)


def one_hot(indices, depth, axis):
    y = indices[..., None] == torch.arange(depth, device=indices.device)
    return torch.movedim(y.to(FLOAT), -1, axis)


# Attention.


def attention(q, k, v, mask=None, scale=1.0, causal=0, first=0, queries=None):
    """Query s of [first, ..) of all `queries` sees, if causal, the keys up to s + keys - queries;
    queries and keys are in the order of so many stripes."""
    if k.shape[1] != q.shape[1]:
        k, v = (x.repeat_interleave(q.shape[1] // x.shape[1], 1) for x in (k, v))
    if causal:
        unseen = ~sees(q, k, causal, 0, first, queries)
        unseen = torch.zeros(unseen.shape, dtype=q.dtype, device=q.device).masked_fill(
            unseen, -math.inf
        )
        mask = unseen if mask is None else mask + unseen
    return F.scaled_dot_product_attention(q, k, v, attn_mask=mask, scale=scale)


def places(index, size, stripes):
    """Where in the sequence what has these indices is, in the order of so many stripes."""
    each = size // max(stripes, 1)
    return index % each * stripes + index // each if stripes > 1 else index


def sees(q, k, causal, window, first, queries):
    """Which keys a query sees."""
    queries = q.shape[2] if queries is None else queries
    place = places(torch.arange(q.shape[2], device=q.device) + first, queries, causal)
    place = place[:, None] + k.shape[2] - queries
    key = places(torch.arange(k.shape[2], device=q.device), k.shape[2], causal)
    seen = torch.ones(q.shape[2], k.shape[2], dtype=torch.bool, device=q.device)
    if causal:
        seen = seen & (key <= place)
    return seen & (key > place - window) if window else seen


def capped_attention(q, k, v, mask=None, scale=1.0, cap=1.0, causal=0, first=0, queries=None):
    if k.shape[1] != q.shape[1]:
        k, v = (x.repeat_interleave(q.shape[1] // x.shape[1], 1) for x in (k, v))
    scores = cap * torch.tanh(scale * (q @ k.mT))
    scores = scores if mask is None else scores + mask
    seen = sees(q, k, causal, 0, first, queries)
    return torch.softmax(scores.masked_fill(~seen, -math.inf), -1) @ v


def sink_attention(q, k, v, sinks, scale=1.0, causal=0, window=0, first=0, queries=None):
    if k.shape[1] != q.shape[1]:
        k, v = (x.repeat_interleave(q.shape[1] // x.shape[1], 1) for x in (k, v))
    seen = sees(q, k, causal, window, first, queries)
    scores = (scale * (q @ k.mT)).masked_fill(~seen, -math.inf)
    sinks = sinks[:, None, None].expand(scores.shape[:3] + (1,))
    return torch.softmax(torch.cat([scores, sinks], -1), -1)[..., :-1] @ v


def rotary(x, cos, sin, interleaved):
    if interleaved:
        a, b = x[..., ::2], x[..., 1::2]
        return torch.stack([a * cos - b * sin, b * cos + a * sin], -1).flatten(-2)
    a, b = x.chunk(2, -1)
    return torch.cat([a * cos - b * sin, b * cos + a * sin], -1)


# Recurrent cells and mixtures of experts.


def lstm_cell(x, state):
    i, f, g, o = x.unbind(-2)
    c = torch.sigmoid(f) * state + torch.sigmoid(i) * torch.tanh(g)
    return torch.sigmoid(o) * torch.tanh(c), c


def gru_cell(x, p, state):
    (xr, xz, xn), (pr, pz, pn) = x.unbind(-2), p.unbind(-2)
    z = torch.sigmoid(xz + pz)
    return (1 - z) * torch.tanh(xn + torch.sigmoid(xr + pr) * pn) + z * state


def top2_gating(gates, seed, capacity, random, salt, first=0):
    """GShard's algorithm 1: what of each token goes to each slot, and the auxiliary loss."""
    groups, tokens, experts = gates.shape
    e1, e2 = torch.sort(gates, dim=-1, descending=True, stable=True).indices[..., :2].unbind(-1)
    g1, g2 = (gates.gather(-1, e[..., None]).squeeze(-1) for e in (e1, e2))
    to1, to2 = (F.one_hot(e, experts) for e in (e1, e2))
    p1 = ((torch.cumsum(to1, 1) - to1) * to1).sum(-1)
    p2 = ((to1.sum(1, keepdim=True) + torch.cumsum(to2, 1) - to2) * to2).sum(-1)
    w1, w2 = g1 / (g1 + g2), g2 / (g1 + g2)
    if random:
        number = torch.arange(groups * tokens, device=gates.device) + first * tokens
        w2 = w2 * (pseudo_random(seed + salt, number.reshape(groups, tokens)) < 2 * w2)
    slot = torch.arange(capacity, device=gates.device)
    y = sum(
        (w[..., None] * to)[..., None] * (p[..., None] == slot)[..., None, :]
        for w, to, p in ((w1, to1, p1), (w2, to2, p2))
    )
    return y, (to1.sum(1) / tokens * (gates.sum(1) / tokens)).sum(-1)


def topk_routing(scores, bias=None, k=1, capacity=1):
    """Weights and slots of each token's k experts, and the tokens in each expert's slots."""
    by = scores if bias is None else scores + bias
    expert = torch.sort(by, dim=-1, descending=True, stable=True).indices[..., :k]
    chosen = torch.zeros_like(scores, dtype=torch.long).scatter(-1, expert, 1)
    place = (torch.cumsum(chosen, -2) - chosen).gather(-1, expert)
    kept = place < capacity
    score = scores.gather(-1, expert)
    weights = torch.where(kept, score / score.sum(-1, keepdim=True), 0)
    slots = torch.where(kept, expert * capacity + place, 0)
    # Those without a slot go to one behind the last, which is cut off.
    *groups, tokens, experts = scores.shape
    target = torch.where(kept, slots, experts * capacity).reshape(*groups, -1)
    token = torch.arange(tokens, device=scores.device)[:, None].expand(*groups, tokens, k)
    table = torch.zeros(*groups, experts * capacity + 1, dtype=torch.long, device=scores.device)
    table = table.scatter(-1, target, token.reshape(*groups, -1))
    return weights, slots, table[..., :-1].reshape(*groups, experts, capacity)


# Losses.


def cross_entropy(logits, labels):
    return F.cross_entropy(logits.flatten(0, -2), labels.flatten().long())


def mse(a, b):
    return F.mse_loss(a, b)


def binary_cross_entropy(logits, targets):
    return F.binary_cross_entropy_with_logits(logits, targets)
