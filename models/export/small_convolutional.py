"""Convolutional networks with few channels, for 16x16 and 32x32 images."""

import math

import torch
from torch import nn
from torch.nn import functional as F
from torchvision.models.densenet import DenseNet
from torchvision.models.googlenet import Inception
from torchvision.models.mobilenetv2 import InvertedResidual
from torchvision.models.mobilenetv3 import InvertedResidualConfig, MobileNetV3
from torchvision.models.resnet import BasicBlock
from torchvision.models.squeezenet import Fire


class ResNet18(nn.Module):
    """ResNet-18 (He et al., 2016) on images of 16x16: 4 stages of 2 blocks, 4 to 16 channels."""

    def __init__(self, widths=(4, 8, 12, 16), classes=10):
        super().__init__()
        self.conv = nn.Conv2d(3, widths[0], 3, 1, 1, bias=False)
        self.norm = nn.BatchNorm2d(widths[0])
        blocks, channels = [], widths[0]
        for stage, width in enumerate(widths):
            for block in range(2):
                stride = 2 if block == 0 and stage > 0 else 1
                shortcut = None
                if stride != 1:
                    shortcut = nn.Sequential(nn.Conv2d(channels, width, 1, stride, bias=False),
                                             nn.BatchNorm2d(width))
                blocks.append(BasicBlock(channels, width, stride, shortcut))
                channels = width
        self.blocks = nn.Sequential(*blocks)
        self.classifier = nn.Linear(channels, classes)

    def forward(self, image):
        x = self.blocks(F.max_pool2d(F.relu(self.norm(self.conv(image))), 3, 2, 1))
        return self.classifier(torch.flatten(F.adaptive_avg_pool2d(x, 1), 1))


class MobileNetV2(nn.Module):
    """Inverted residuals with linear bottlenecks (Sandler et al., 2018): ReLU6, depthwise."""

    def __init__(self, classes=10):
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, 8, 3, 2, 1, bias=False), nn.BatchNorm2d(8),
                                  nn.ReLU6())
        self.blocks = nn.Sequential(InvertedResidual(8, 8, 1, 1), InvertedResidual(8, 12, 2, 4),
                                    InvertedResidual(12, 12, 1, 4), InvertedResidual(12, 16, 2, 4))
        self.classifier = nn.Sequential(nn.Dropout(0.2), nn.Linear(16, classes))

    def forward(self, image):
        return self.classifier(self.blocks(self.stem(image)).mean([2, 3]))


def mobilenet_v3():
    """Howard et al. (2019): squeeze and excitation, HardSwish and HardSigmoid."""
    rows = [(8, 3, 8, 8, True, "RE", 2, 1), (8, 3, 16, 8, False, "RE", 1, 1),
            (8, 5, 24, 12, True, "HS", 2, 1), (12, 5, 24, 12, True, "HS", 1, 1)]
    return MobileNetV3([InvertedResidualConfig(*row, width_mult=1.0) for row in rows],
                       last_channel=32, num_classes=10)


class SqueezeNet(nn.Module):
    """Iandola et al. (2016): Fire modules, max pooling with ceil_mode."""

    def __init__(self, classes=10):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(3, 8, 3, stride=2), nn.ReLU(), nn.MaxPool2d(3, 2, ceil_mode=True),
            Fire(8, 4, 8, 8), Fire(16, 4, 8, 8), nn.MaxPool2d(3, 2, ceil_mode=True),
            Fire(16, 6, 12, 12))
        self.classifier = nn.Sequential(nn.Dropout(), nn.Conv2d(24, classes, 1), nn.ReLU(),
                                        nn.AdaptiveAvgPool2d((1, 1)))

    def forward(self, image):
        return torch.flatten(self.classifier(self.features(image)), 1)


def densenet():
    """Huang et al. (2017)."""
    return DenseNet(growth_rate=4, block_config=(2, 2), num_init_features=8, bn_size=2,
                    num_classes=10)


class InceptionNet(nn.Module):
    """Two Inception modules (Szegedy et al., 2015), local response normalisation between them."""

    def __init__(self, classes=10):
        super().__init__()
        self.first = Inception(3, 4, 4, 6, 2, 4, 4)
        self.norm = nn.LocalResponseNorm(5)
        self.second = Inception(18, 4, 4, 8, 2, 4, 4)
        self.classifier = nn.Linear(20, classes)

    def forward(self, image):
        x = self.norm(F.max_pool2d(self.first(image), 3, stride=2, ceil_mode=True))
        return self.classifier(self.second(x).mean([2, 3]))


class DiffusionBlock(nn.Module):
    def __init__(self, in_channels, out_channels, time_channels):
        super().__init__()
        self.norm1 = nn.GroupNorm(2, in_channels)
        self.conv1 = nn.Conv2d(in_channels, out_channels, 3, padding=1)
        self.time = nn.Linear(time_channels, out_channels)
        self.norm2 = nn.GroupNorm(2, out_channels)
        self.conv2 = nn.Conv2d(out_channels, out_channels, 3, padding=1)
        self.shortcut = nn.Conv2d(in_channels, out_channels, 1)

    def forward(self, x, time):
        y = self.conv1(F.silu(self.norm1(x))) + self.time(time)[:, :, None, None]
        return self.shortcut(x) + self.conv2(F.silu(self.norm2(y)))


class DiffusionUNet(nn.Module):
    """A U-Net of a diffusion model (Ho et al., 2020): noisy image and time step -> noise.

    Down by a strided convolution, up once by nearest neighbours and once by a transposed
    convolution; the time as sines and cosines; attention over pixels at the bottom.
    """

    def __init__(self, channels=4, time_channels=8):
        super().__init__()
        self.time_channels = time_channels
        self.time = nn.Sequential(nn.Linear(time_channels, time_channels), nn.SiLU())
        self.stem = nn.Conv2d(3, channels, 3, padding=1)
        self.down1 = DiffusionBlock(channels, channels, time_channels)
        self.narrow1 = nn.Conv2d(channels, 2 * channels, 3, 2, 1)
        self.down2 = DiffusionBlock(2 * channels, 2 * channels, time_channels)
        self.narrow2 = nn.Conv2d(2 * channels, 2 * channels, 3, 2, 1)
        self.qkv = nn.Conv2d(2 * channels, 6 * channels, 1)
        self.up2 = DiffusionBlock(4 * channels, 2 * channels, time_channels)
        self.expand = nn.ConvTranspose2d(2 * channels, channels, 4, 2, 1)
        self.up1 = DiffusionBlock(2 * channels, channels, time_channels)
        self.head = nn.Conv2d(channels, 3, 3, padding=1)

    def embed(self, step):
        half = self.time_channels // 2
        rates = torch.exp(torch.arange(half) * (-math.log(10000.0) / half)).to(step.dtype)
        angles = step[:, None] * rates[None]
        return self.time(torch.cat([angles.sin(), angles.cos()], 1))

    def forward(self, image, step):
        time = self.embed(step)
        a = self.down1(self.stem(image), time)
        b = self.down2(self.narrow1(a), time)
        x = self.narrow2(b)
        q, k, v = self.qkv(x).flatten(2).chunk(3, dim=1)
        weights = torch.softmax(torch.einsum("bcs,bct->bst", q, k) / math.sqrt(q.shape[1]), -1)
        x = x + torch.einsum("bst,bct->bcs", weights, v).reshape(x.shape)
        x = F.interpolate(x, scale_factor=2.0, mode="nearest")
        x = self.up2(torch.cat([x, b], 1), time)
        return self.head(self.up1(torch.cat([self.expand(x), a], 1), time))


class Segmenter(nn.Module):
    """Dilated convolutions, InstanceNorm, PReLU, reflection padding, bilinear up-sampling."""

    def __init__(self, channels=6, classes=4):
        super().__init__()
        self.conv1 = nn.Conv2d(3, channels, 3, 2, 1)
        self.norm = nn.InstanceNorm2d(channels, affine=True)
        self.slope = nn.PReLU(channels)
        self.conv2 = nn.Conv2d(channels, channels, 3, padding=2, dilation=2)
        self.pad = nn.ReflectionPad2d(1)
        self.conv3 = nn.Conv2d(channels, classes, 3)

    def forward(self, image):
        x = self.slope(self.norm(self.conv1(image)))
        x = self.conv3(self.pad(F.elu(self.conv2(x))))
        x = F.interpolate(x, size=image.shape[2:], mode="bilinear", align_corners=False)
        return F.log_softmax(x, dim=1)
