"""Transformers, recurrent networks and recommenders of small width."""

import math

import torch
from torch import nn
from torch.nn import functional as F


class CausalAttention(nn.Module):
    def __init__(self, hidden, heads, length):
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(hidden, 3 * hidden)
        self.output = nn.Linear(hidden, hidden)
        self.register_buffer("mask", torch.tril(torch.ones(length, length)).bool()[None, None])

    def forward(self, x):
        batch, length, hidden = x.shape
        q, k, v = (part.view(batch, length, self.heads, -1).transpose(1, 2)
                   for part in self.qkv(x).split(hidden, dim=2))
        scores = q @ k.transpose(2, 3) / math.sqrt(q.shape[-1])
        scores = torch.where(self.mask[:, :, :length, :length], scores,
                             torch.full([], -10000.0, dtype=scores.dtype))
        return self.output((scores.softmax(-1) @ v).transpose(1, 2).reshape(x.shape))


class GptBlock(nn.Module):
    def __init__(self, hidden, heads, length, dropout):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(hidden), nn.LayerNorm(hidden)
        self.attention = CausalAttention(hidden, heads, length)
        self.up, self.down = nn.Linear(hidden, 4 * hidden), nn.Linear(4 * hidden, hidden)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x):
        x = x + self.dropout(self.attention(self.norm1(x)))
        inner = self.up(self.norm2(x))
        # GPT-2's own form of Gelu, by tanh.
        gelu = 0.5 * inner * (1 + torch.tanh(
            math.sqrt(2 / math.pi) * (inner + 0.044715 * torch.pow(inner, 3.0))))
        return x + self.dropout(self.down(gelu))


class Gpt(nn.Module):
    """A decoder as GPT-2 (Radford et al., 2019): pre-LN, causal mask, the head tied to the table."""

    def __init__(self, vocabulary=48, length=8, hidden=16, heads=2, layers=2, dropout=0.0):
        super().__init__()
        self.tokens = nn.Embedding(vocabulary, hidden)
        self.positions = nn.Embedding(length, hidden)
        self.blocks = nn.Sequential(
            *(GptBlock(hidden, heads, length, dropout) for _ in range(layers)))
        self.norm = nn.LayerNorm(hidden)

    def forward(self, ids):
        positions = torch.arange(ids.shape[1])
        x = self.blocks(self.tokens(ids) + self.positions(positions))
        return self.norm(x) @ self.tokens.weight.T


class VisionTransformer(nn.Module):
    """Patches, a class token, encoder layers (Dosovitskiy et al., 2021)."""

    def __init__(self, hidden=16, heads=2, patches=16, classes=10):
        super().__init__()
        self.patch = nn.Conv2d(3, hidden, 4, 4)
        self.token = nn.Parameter(torch.randn(1, 1, hidden) * 0.1)
        self.positions = nn.Parameter(torch.randn(1, patches + 1, hidden) * 0.1)
        self.layer = nn.TransformerEncoderLayer(hidden, heads, 32, 0.0, "gelu", batch_first=True,
                                                norm_first=True)
        self.head = nn.Linear(hidden, classes)

    def forward(self, image):
        x = self.patch(image).flatten(2).transpose(1, 2)
        x = torch.cat([self.token.expand(x.shape[0], -1, -1), x], 1) + self.positions
        return self.head(self.layer(x)[:, 0])


class BertMasked(nn.Module):
    """BERT with token types and an attention mask of integers; the pooled first token."""

    def __init__(self, vocabulary=48, length=8, hidden=16, heads=2):
        super().__init__()
        self.heads = heads
        self.tokens, self.types = nn.Embedding(vocabulary, hidden), nn.Embedding(2, hidden)
        self.positions = nn.Parameter(torch.randn(length, hidden) * 0.1)
        self.norm1, self.norm2 = nn.LayerNorm(hidden), nn.LayerNorm(hidden)
        self.query, self.key = nn.Linear(hidden, hidden), nn.Linear(hidden, hidden)
        self.value, self.output = nn.Linear(hidden, hidden), nn.Linear(hidden, hidden)
        self.pooler = nn.Linear(hidden, hidden)

    def split(self, x):
        return x.view(x.size(0), x.size(1), self.heads, -1).permute(0, 2, 1, 3)

    def forward(self, ids, types, mask):
        x = self.norm1(self.tokens(ids) + self.types(types) + self.positions[:ids.size(1)])
        added = (1.0 - mask[:, None, None, :].to(x.dtype)) * -10000.0
        q, k, v = self.split(self.query(x)), self.split(self.key(x)), self.split(self.value(x))
        scores = torch.matmul(q, k.transpose(-1, -2)) / math.sqrt(q.size(-1)) + added
        context = torch.matmul(F.softmax(scores, -1), v).permute(0, 2, 1, 3).contiguous()
        x = self.norm2(x + self.output(context.view(context.size(0), context.size(1), -1)))
        return x, torch.tanh(self.pooler(x[:, 0]))


class EncoderDecoder(nn.Module):
    """torch's own nn.Transformer (Vaswani et al., 2017), with a causal mask for the target."""

    def __init__(self, vocabulary=40, hidden=16):
        super().__init__()
        self.source, self.target = nn.Embedding(vocabulary, hidden), nn.Embedding(vocabulary, hidden)
        self.transformer = nn.Transformer(hidden, 2, 1, 1, 32, 0.0, batch_first=True)
        self.head = nn.Linear(hidden, vocabulary)

    def forward(self, source, target):
        length = target.shape[1]
        mask = torch.triu(torch.full((length, length), float("-inf")), diagonal=1)
        mask = mask.to(self.head.weight.dtype)
        x = self.transformer(self.source(source), self.target(target), tgt_mask=mask)
        return F.log_softmax(self.head(x), -1)


class LstmLanguageModel(nn.Module):
    """Two LSTM layers over token ids (Zaremba et al., 2014)."""

    def __init__(self, vocabulary=40, hidden=12):
        super().__init__()
        self.tokens = nn.Embedding(vocabulary, hidden)
        self.lstm = nn.LSTM(hidden, hidden, num_layers=2, batch_first=True)
        self.head = nn.Linear(hidden, vocabulary)

    def forward(self, ids):
        states, _ = self.lstm(self.tokens(ids))
        return self.head(states)


class GruClassifier(nn.Module):
    """A bidirectional GRU whose last states are classified."""

    def __init__(self, features=6, hidden=8, classes=4):
        super().__init__()
        self.gru = nn.GRU(features, hidden, bidirectional=True)
        self.head = nn.Linear(2 * hidden, classes)

    def forward(self, sequence, initial):
        states, last = self.gru(sequence, initial)
        return self.head(torch.cat([last[0], last[1]], 1)), states


class Dlrm(nn.Module):
    """DLRM (Naumov et al., 2019): bags of embeddings, pairwise products, two perceptrons."""

    def __init__(self, rows=(20, 30, 16), width=8, dense=5):
        super().__init__()
        self.bags = nn.ModuleList(nn.EmbeddingBag(n, width, mode="sum") for n in rows)
        self.bottom = nn.Sequential(nn.Linear(dense, 16), nn.ReLU(), nn.Linear(16, width),
                                    nn.ReLU())
        pairs = len(rows) * (len(rows) + 1) // 2
        self.top = nn.Sequential(nn.Linear(width + pairs, 16), nn.ReLU(), nn.Linear(16, 1))

    def forward(self, dense, *indices):
        x = self.bottom(dense)
        vectors = torch.stack([x] + [bag(i) for bag, i in zip(self.bags, indices)], dim=1)
        products = torch.bmm(vectors, vectors.transpose(1, 2))
        count = vectors.shape[1]
        i = torch.tensor([a for a in range(count) for b in range(a)])
        j = torch.tensor([b for a in range(count) for b in range(a)])
        return torch.sigmoid(self.top(torch.cat([x, products[:, i, j]], dim=1)))


class WideDeep(nn.Module):
    """Wide & deep (Cheng et al., 2016): one-hot crosses beside embeddings and a perceptron."""

    def __init__(self, buckets=24, width=6, dense=4):
        super().__init__()
        self.buckets = buckets
        self.wide = nn.Linear(buckets, 1)
        self.tables = nn.ModuleList(nn.Embedding(16, width) for _ in range(2))
        self.deep = nn.Sequential(nn.Linear(2 * width + dense, 16), nn.LeakyReLU(), nn.Linear(16, 8),
                                  nn.Softplus(), nn.Linear(8, 1))

    def forward(self, dense, left, right):
        crossed = F.one_hot((left * 16 + right) % self.buckets, self.buckets).to(dense.dtype)
        x = torch.cat([self.tables[0](left), self.tables[1](right), dense], 1)
        return torch.sigmoid(self.wide(crossed) + self.deep(x))
