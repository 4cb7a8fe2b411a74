"""The networks whose ONNX files lie in models/data, and the inputs they are compared on.

Everything here is deterministic: build_*() seeds torch before it draws a weight.
"""

import csv
import math
import pathlib

import torch
from torch import nn
from torch.nn import functional as F

DATA_DIR = pathlib.Path(__file__).resolve().parent.parent / "data"
SEED = 2022

DIGITS_BATCH = 64
DIGITS_TRAIN_ROWS = 1437  # The rest, 360 rows, is the test set.
DIGITS_PIXEL_MAX = 16.0

BERT_BATCH, BERT_SEQUENCE, BERT_VOCABULARY = 8, 16, 128

RESNEXT_BATCH, RESNEXT_IMAGE = 16, 224


class DigitsCnn(nn.Module):
    """8x8 grey images [n, 1, 8, 8] -> logits [n, 10]; the loss is added by the trainer."""

    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 16, 3, padding=1)
        self.conv2 = nn.Conv2d(16, 32, 3, padding=1)
        self.dense1 = nn.Linear(32 * 4 * 4, 64)
        self.dense2 = nn.Linear(64, 10)

    def forward(self, image):
        x = F.relu(self.conv1(image))
        x = F.relu(self.conv2(x))
        x = torch.flatten(F.max_pool2d(x, 2), 1)
        return self.dense2(F.relu(self.dense1(x)))


class SelfAttention(nn.Module):
    def __init__(self, hidden, heads):
        super().__init__()
        self.heads, self.head_size = heads, hidden // heads
        self.query = nn.Linear(hidden, hidden)
        self.key = nn.Linear(hidden, hidden)
        self.value = nn.Linear(hidden, hidden)
        self.output = nn.Linear(hidden, hidden)

    def split_heads(self, x):
        """[b, s, heads * head_size] -> [b, heads, s, head_size], with constants as sizes."""
        x = x.reshape(BERT_BATCH, BERT_SEQUENCE, self.heads, self.head_size)
        return x.permute(0, 2, 1, 3)

    def forward(self, x):
        q = self.split_heads(self.query(x))
        k = self.split_heads(self.key(x))
        v = self.split_heads(self.value(x))
        scores = torch.matmul(q, k.transpose(2, 3)) / math.sqrt(self.head_size)
        context = torch.matmul(torch.softmax(scores, dim=-1), v)
        context = context.permute(0, 2, 1, 3)
        return self.output(context.reshape(BERT_BATCH, BERT_SEQUENCE, self.heads * self.head_size))


class EncoderLayer(nn.Module):
    """One post-LN layer, as in BERT (Devlin et al., 2019), without dropout and mask."""

    def __init__(self, hidden, heads, intermediate):
        super().__init__()
        self.attention = SelfAttention(hidden, heads)
        self.attention_norm = nn.LayerNorm(hidden)
        self.intermediate = nn.Linear(hidden, intermediate)
        self.output = nn.Linear(intermediate, hidden)
        self.output_norm = nn.LayerNorm(hidden)

    def forward(self, x):
        x = self.attention_norm(x + self.attention(x))
        return self.output_norm(x + self.output(F.gelu(self.intermediate(x))))


class BertTiny(nn.Module):
    """Token ids [8, 16] int64 -> encoded [8, 16, 64]."""

    def __init__(self, hidden=64, heads=4, intermediate=256, layers=2):
        super().__init__()
        self.token_embedding = nn.Embedding(BERT_VOCABULARY, hidden)
        self.position_embedding = nn.Parameter(torch.empty(1, BERT_SEQUENCE, hidden))
        self.embedding_norm = nn.LayerNorm(hidden)
        self.layers = nn.ModuleList(
            EncoderLayer(hidden, heads, intermediate) for _ in range(layers))

    def forward(self, input_ids):
        x = self.embedding_norm(self.token_embedding(input_ids) + self.position_embedding)
        for layer in self.layers:
            x = layer(x)
        return x


class ResNeXtBlock(nn.Module):
    """The bottleneck of ResNeXt (Xie et al., 2017, figure 3c): 1x1, grouped 3x3, 1x1."""

    def __init__(self, in_channels, width, out_channels, stride, groups):
        super().__init__()
        self.conv1 = nn.Conv2d(in_channels, width, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.conv2 = nn.Conv2d(width, width, 3, stride, 1, groups=groups, bias=False)
        self.bn2 = nn.BatchNorm2d(width)
        self.conv3 = nn.Conv2d(width, out_channels, 1, bias=False)
        self.bn3 = nn.BatchNorm2d(out_channels)
        self.shortcut = None
        if stride != 1 or in_channels != out_channels:
            self.shortcut = nn.Sequential(
                nn.Conv2d(in_channels, out_channels, 1, stride, bias=False),
                nn.BatchNorm2d(out_channels))

    def forward(self, x):
        y = F.relu(self.bn1(self.conv1(x)))
        y = F.relu(self.bn2(self.conv2(y)))
        y = self.bn3(self.conv3(y))
        return F.relu(y + (x if self.shortcut is None else self.shortcut(x)))


class ResNeXt50(nn.Module):
    """ResNeXt-50 32x4d: images [n, 3, 224, 224] -> logits [n, 1000]."""

    def __init__(self, groups=32, group_width=4):
        super().__init__()
        self.conv1 = nn.Conv2d(3, 64, 7, 2, 3, bias=False)
        self.bn1 = nn.BatchNorm2d(64)
        self.stages = nn.ModuleList()
        channels = 64
        for stage, blocks in enumerate((3, 4, 6, 3)):
            width, out_channels = groups * group_width << stage, 256 << stage
            rows = []
            for block in range(blocks):
                stride = 2 if block == 0 and stage > 0 else 1
                rows.append(ResNeXtBlock(channels, width, out_channels, stride, groups))
                channels = out_channels
            self.stages.append(nn.Sequential(*rows))
        self.classifier = nn.Linear(channels, 1000)

    def forward(self, image):
        x = F.max_pool2d(F.relu(self.bn1(self.conv1(image))), 3, 2, 1)
        for stage in self.stages:
            x = stage(x)
        return self.classifier(torch.flatten(F.adaptive_avg_pool2d(x, 1), 1))


def perturb_vectors(model):
    """Moves 1-d parameters and statistics off their constant defaults (all zeros, all ones).

    Otherwise the exporter merges equal tensors into one (and adds Identity nodes), so that two
    LayerNorms would share a trainable weight, and a missing bias could not be seen in the numbers.
    """
    with torch.no_grad():
        for tensor in (*model.parameters(), *model.buffers()):
            if tensor.dim() == 1:
                tensor.add_(0.02 * torch.randn_like(tensor))


def build_digits_cnn():
    torch.manual_seed(SEED)
    model = DigitsCnn()
    for module in model.children():
        # He et al. (2015); torch's own default starts too small for plain SGD in 20 epochs.
        nn.init.kaiming_normal_(module.weight, nonlinearity="relu")
        nn.init.zeros_(module.bias)
    perturb_vectors(model)
    return model.eval()


def build_bert_tiny():
    torch.manual_seed(SEED)
    model = BertTiny()
    with torch.no_grad():
        # 0.02 is BERT's own deviation at width 768; at width 64 attention would be flat with it.
        model.token_embedding.weight.normal_(0.0, 0.1)
        model.position_embedding.normal_(0.0, 0.1)
    perturb_vectors(model)
    return model.eval()


def build_resnext50():
    torch.manual_seed(SEED)
    model = ResNeXt50()
    perturb_vectors(model)
    return model.eval()


def bert_input_ids():
    """Token ids (7 i + 3 j) mod 128 for row i, position j."""
    i = torch.arange(BERT_BATCH).unsqueeze(1)
    j = torch.arange(BERT_SEQUENCE).unsqueeze(0)
    return (7 * i + 3 * j) % BERT_VOCABULARY


def read_digits():
    """Images [1797, 1, 8, 8] scaled to [0, 1] and labels [1797], from models/data/digits.csv."""
    with open(DATA_DIR / "digits.csv", newline="") as file:
        rows = [[int(cell) for cell in row] for row in csv.reader(file)]
    table = torch.tensor(rows)
    images = table[:, :64].reshape(-1, 1, 8, 8).to(torch.float32) / DIGITS_PIXEL_MAX
    return images, table[:, 64]
