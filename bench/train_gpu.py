#!/usr/bin/env python3
"""A training step of PyTorch on one GPU, for scripts/gpu_check.sh: prints its median in milliseconds.

    python3 bench/train_gpu.py NETWORK eager|channels_last|compile [STEPS]
    python3 bench/train_gpu.py peak          TFLOP/s of a large product in bfloat16

Networks and sizes are those of the zoo's settings in gpu_check.sh. Mixed precision as PyTorch has
it: float32 weights, bfloat16 where autocast casts, a fused optimizer. Compiled is with CUDA graphs.
Needs nothing but torch; inception_v3 needs torchvision.
"""
import statistics
import sys
import time

import torch
from torch import nn
from torch.nn import functional


class Perceptron(nn.Module):
    def __init__(self, layers, size):
        super().__init__()
        parts = []
        for layer in range(layers):
            parts += [nn.Linear(size, size)] + ([nn.ReLU()] if layer + 1 < layers else [])
        self.layers = nn.Sequential(*parts)

    def forward(self, features, labels):
        return functional.cross_entropy(self.layers(features), labels)


class Attention(nn.Module):
    def __init__(self, hidden, heads, causal):
        super().__init__()
        self.heads, self.causal = heads, causal
        self.query, self.key = nn.Linear(hidden, hidden), nn.Linear(hidden, hidden)
        self.value, self.output = nn.Linear(hidden, hidden), nn.Linear(hidden, hidden)

    def forward(self, x):
        def split(y):
            return y.unflatten(-1, (self.heads, -1)).transpose(1, 2)

        context = functional.scaled_dot_product_attention(
            split(self.query(x)), split(self.key(x)), split(self.value(x)), is_causal=self.causal)
        return self.output(context.transpose(1, 2).flatten(2))


class Layer(nn.Module):
    """Norms behind the residual, as in BERT, or in front of the block, as in GPT."""

    def __init__(self, hidden, heads, causal):
        super().__init__()
        self.causal = causal
        self.attention = Attention(hidden, heads, causal)
        self.norm1, self.norm2 = nn.LayerNorm(hidden), nn.LayerNorm(hidden)
        self.up, self.down = nn.Linear(hidden, 4 * hidden), nn.Linear(4 * hidden, hidden)

    def forward(self, x):
        if self.causal:
            x = x + self.attention(self.norm1(x))
            return x + self.down(functional.gelu(self.up(self.norm2(x))))
        x = self.norm1(x + self.attention(x))
        return self.norm2(x + self.down(functional.gelu(self.up(x))))


class Encoder(nn.Module):
    def __init__(self, layers, hidden, heads, length):
        super().__init__()
        self.words = nn.Embedding(30522, hidden)
        self.positions = nn.Parameter(0.02 * torch.randn(1, length, hidden))
        self.norm = nn.LayerNorm(hidden)
        self.layers = nn.Sequential(*(Layer(hidden, heads, False) for _ in range(layers)))

    def forward(self, words, target):
        return functional.mse_loss(self.layers(self.norm(self.words(words) + self.positions)),
                                   target)


class Decoder(nn.Module):
    def __init__(self, layers, hidden, heads, length):
        super().__init__()
        self.words = nn.Embedding(50257, hidden)
        self.positions = nn.Parameter(0.02 * torch.randn(1, length, hidden))
        self.layers = nn.Sequential(*(Layer(hidden, heads, True) for _ in range(layers)))
        self.norm = nn.LayerNorm(hidden)

    def forward(self, words, labels):
        states = self.norm(self.layers(self.words(words) + self.positions))
        logits = functional.linear(states, self.words.weight)
        return functional.cross_entropy(logits.flatten(0, 1), labels.flatten())


class Bottleneck(nn.Module):
    def __init__(self, channels, width, stride):
        super().__init__()

        def part(i, o, kernel, step):
            return [nn.Conv2d(i, o, kernel, step, kernel // 2, bias=False), nn.BatchNorm2d(o)]

        self.parts = nn.Sequential(*part(channels, width, 1, 1), nn.ReLU(True),
                                   *part(width, width, 3, stride), nn.ReLU(True),
                                   *part(width, 4 * width, 1, 1))
        same = stride == 1 and channels == 4 * width
        self.short = nn.Identity() if same else nn.Sequential(*part(channels, 4 * width, 1, stride))

    def forward(self, x):
        return functional.relu(self.parts(x) + self.short(x))


class Residual(nn.Module):
    def __init__(self):
        super().__init__()
        parts = [nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64), nn.ReLU(True),
                 nn.MaxPool2d(3, 2, 1)]
        channels = 64
        for stage, blocks in enumerate((3, 4, 6, 3)):
            width = 64 << stage
            for block in range(blocks):
                parts.append(Bottleneck(channels, width, 2 if block == 0 and stage > 0 else 1))
                channels = 4 * width
        self.parts = nn.Sequential(*parts)
        self.logits = nn.Linear(2048, 1000)

    def forward(self, images, labels):
        return functional.cross_entropy(self.logits(self.parts(images).mean((2, 3))), labels)


class Inception(nn.Module):
    def __init__(self):
        super().__init__()
        import torchvision
        self.network = torchvision.models.inception_v3(aux_logits=False, init_weights=False)
        self.network.dropout = nn.Identity()

    def forward(self, images, labels):
        return functional.cross_entropy(self.network(images), labels)


class Recommendation(nn.Module):
    def __init__(self, rows):
        super().__init__()
        self.tables = nn.ModuleList(nn.EmbeddingBag(rows, 64, mode="sum") for _ in range(8))
        self.bottom = self.dense([64, 512, 512, 64])
        self.top = self.dense([576, 1024, 1024, 1024, 1])

    @staticmethod
    def dense(sizes):
        layers = []
        for size, following in zip(sizes, sizes[1:]):
            layers += [nn.Linear(size, following, bias=False), nn.ReLU()]
        return nn.Sequential(*layers[:-1])

    def forward(self, dense, indices, target):
        found = [table(indices[:, t:t + 1]) for t, table in enumerate(self.tables)]
        score = self.top(torch.cat([self.bottom(dense)] + found, 1))
        return functional.mse_loss(score.float(), target)


def words(vocabulary, batch, length):
    return torch.randint(vocabulary, (batch, length))


def images(batch, side):
    return torch.randn(batch, 3, side, side), torch.randint(1000, (batch,))


NETWORKS = {
    "mlp": (lambda: Perceptron(8, 4096),
            lambda: (torch.randn(1024, 4096), torch.randint(4096, (1024,)))),
    "bert_large": (lambda: Encoder(24, 1024, 16, 512),
                   lambda: (words(30522, 8, 512), torch.randn(8, 512, 1024))),
    "gpt_350m": (lambda: Decoder(24, 1024, 16, 1024),
                 lambda: (words(50257, 8, 1024), words(50257, 8, 1024))),
    "gpt_1.3b": (lambda: Decoder(24, 2048, 16, 1024),
                 lambda: (words(50257, 4, 1024), words(50257, 4, 1024))),
    "resnet50": (Residual, lambda: images(64, 224)),
    "inception_v3": (Inception, lambda: images(64, 299)),
    "dlrm": (lambda: Recommendation(100000),
             lambda: (torch.randn(4096, 64), torch.randint(100000, (4096, 8)),
                      torch.randn(4096, 1))),
}


def peak():
    size = 8192
    a, b = (torch.randn(size, size, device="cuda", dtype=torch.bfloat16) for _ in range(2))
    times = []
    for _ in range(20):
        torch.cuda.synchronize()
        begin = time.perf_counter()
        for _ in range(5):
            a @ b
        torch.cuda.synchronize()
        times.append((time.perf_counter() - begin) / 5)
    print(f"{2 * size**3 / statistics.median(times) / 1e12:.1f}")


def main():
    if sys.argv[1] == "peak":
        return peak()
    name, how = sys.argv[1], sys.argv[2]
    steps = int(sys.argv[3]) if len(sys.argv) > 3 else 20
    torch.manual_seed(1)
    torch.backends.cudnn.benchmark = True
    make, draw = NETWORKS[name]
    network = make().train().cuda()
    inputs = tuple(x.cuda() for x in draw())
    if how == "channels_last":
        network = network.to(memory_format=torch.channels_last)
        inputs = tuple(x.contiguous(memory_format=torch.channels_last) if x.dim() == 4 else x
                       for x in inputs)
    if name == "dlrm":
        optimizer = torch.optim.SGD(network.parameters(), lr=0.01, fused=True)
    else:
        optimizer = torch.optim.Adam(network.parameters(), lr=1e-4, fused=True)
    loss_of = torch.compile(network, mode="reduce-overhead") if how == "compile" else network
    times = []
    for _ in range(steps + 5):
        torch.cuda.synchronize()
        begin = time.perf_counter()
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast("cuda", dtype=torch.bfloat16):
            loss = loss_of(*inputs)
        loss.backward()
        optimizer.step()
        torch.cuda.synchronize()
        times.append(time.perf_counter() - begin)
    print(f"{1e3 * statistics.median(times[5:]):.3f}")


main()
