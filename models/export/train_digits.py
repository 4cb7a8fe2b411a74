#!/usr/bin/python3
"""Trains the digits classifier in torch from the weights of digits_cnn.onnx, to know what to expect.

Run: /usr/bin/python3 models/export/train_digits.py [--learning_rate=0.1] [--epochs=20]
Plain SGD, batches of 64; a last incomplete batch is left out. Without --shuffle the batches are
taken in file order in every epoch, which any runtime can repeat without sharing a random generator.
--test=tail is the convention of models/data/README.md: the last 360 images. --test=every_fifth
tests on lines 5, 10, 15, ... and is easier; see there.
"""

import argparse

import torch
from torch.nn import functional as F

import networks


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--learning_rate", type=float, default=0.1)
    parser.add_argument("--epochs", type=int, default=20)
    parser.add_argument("--shuffle", action="store_true", help="a new order in each epoch")
    parser.add_argument("--test", choices=("tail", "every_fifth"), default="tail")
    options = parser.parse_args()

    images, labels = networks.read_digits()
    index = torch.arange(len(images))
    is_test = index >= networks.DIGITS_TRAIN_ROWS if options.test == "tail" else index % 5 == 4
    train, test = index[~is_test], index[is_test]
    batch = networks.DIGITS_BATCH
    model = networks.build_digits_cnn()
    optimizer = torch.optim.SGD(model.parameters(), lr=options.learning_rate)
    generator = torch.Generator().manual_seed(networks.SEED)
    for epoch in range(1, options.epochs + 1):
        order = (train[torch.randperm(len(train), generator=generator)] if options.shuffle
                 else train)
        for start in range(0, len(train) - batch + 1, batch):
            rows = order[start:start + batch]
            optimizer.zero_grad()
            loss = F.cross_entropy(model(images[rows]), labels[rows])
            loss.backward()
            optimizer.step()
        with torch.no_grad():
            correct = model(images[test]).argmax(1) == labels[test]
        print(f"epoch {epoch:2d}  last loss {loss.item():.4f}  "
              f"test accuracy {correct.float().mean().item():.4f}")


if __name__ == "__main__":
    main()
