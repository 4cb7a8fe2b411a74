#!/usr/bin/python3
"""Writes models/data/*_reference.txt: what torch computes for the exported networks, in float64.

Run: /usr/bin/python3 models/export/reference_outputs.py   (after the two other export scripts)

A line is a key and its values, separated by single spaces; '#' starts a comment line:

    loss L                            before any step
    output NAME first V1..V8          the first eight elements by rows
    output NAME mean V
    output NAME sum_of_squares V
    gradient NAME l2 V first V1..V4 weighted_sum V
                                      NAME and element order are those of the ONNX initializer;
                                      weighted_sum, which sees the order, is sum_i g[i] (i mod 7 - 3)
    sgd_loss LEARNING_RATE L1 L2 L3   the loss after 1, 2, 3 plain SGD steps on the same batch
"""

import onnx
from onnx import numpy_helper
import torch
from torch.nn import functional as F

import networks

SGD_LEARNING_RATE = 0.05


def numbers(values):
    return " ".join(f"{float(value):.12g}" for value in values)


def onnx_gradients(model, onnx_file):
    """Yields (initializer name, gradient in the initializer's layout), in the file's order.

    The exporter folds the transpose of a Linear weight into an initializer with a name of its
    own, so initializers are matched with parameters by value.
    """
    parameters = list(model.parameters())
    graph = onnx.load(networks.DATA_DIR / onnx_file).graph
    assert len(graph.initializer) == len(parameters)
    for initializer in graph.initializer:
        value = torch.tensor(numpy_helper.to_array(initializer)).to(torch.float64)
        matches = [p.grad for p in parameters if torch.equal(p.detach(), value)]
        matches += [p.grad.T for p in parameters
                    if p.dim() == 2 and torch.equal(p.detach().T, value)]
        assert len(matches) == 1, f"{onnx_file}: {initializer.name} matches {len(matches)} parameters"
        yield initializer.name, matches[0]


def summary(model, onnx_file, output_name, inputs, loss_of):
    model.zero_grad()
    output = model(inputs)
    loss = loss_of(output)
    loss.backward()
    flat = output.detach().flatten()
    lines = [f"loss {numbers([loss])}",
             f"output {output_name} first {numbers(flat[:8])}",
             f"output {output_name} mean {numbers([flat.mean()])}",
             f"output {output_name} sum_of_squares {numbers([flat.square().sum()])}"]
    for name, gradient in onnx_gradients(model, onnx_file):
        flat = gradient.flatten()
        weights = torch.arange(len(flat)) % 7 - 3
        lines.append(f"gradient {name} l2 {numbers([flat.norm()])} first {numbers(flat[:4])} "
                     f"weighted_sum {numbers([(flat * weights).sum()])}")
    return lines


def sgd_losses(model, inputs, loss_of, steps=3):
    optimizer = torch.optim.SGD(model.parameters(), lr=SGD_LEARNING_RATE)
    for _ in range(steps):
        optimizer.zero_grad()
        loss_of(model(inputs)).backward()
        optimizer.step()
        with torch.no_grad():
            yield loss_of(model(inputs))


def write(file_name, comments, lines):
    path = networks.DATA_DIR / file_name
    path.write_text("\n".join([f"# {line}" for line in comments] + lines) + "\n")
    print(path)


def main():
    bert = networks.build_bert_tiny().double()
    write("bert_tiny_reference.txt",
          ["bert_tiny.onnx on input_ids[i, j] = (7 i + 3 j) mod 128; loss = mean(encoded^2).",
           "Written by models/export/reference_outputs.py, which describes the format."],
          summary(bert, "bert_tiny.onnx", "encoded", networks.bert_input_ids(),
                  lambda encoded: encoded.square().mean()))

    images, labels = networks.read_digits()
    images, labels = images[:networks.DIGITS_BATCH].double(), labels[:networks.DIGITS_BATCH]
    digits = networks.build_digits_cnn().double()

    def digits_loss(logits):
        return F.cross_entropy(logits, labels)

    lines = summary(digits, "digits_cnn.onnx", "logits", images, digits_loss)
    losses = numbers(sgd_losses(digits, images, digits_loss))
    write("digits_cnn_reference.txt",
          ["digits_cnn.onnx on the first 64 rows of digits.csv, pixels / 16; loss = mean cross-entropy.",
           "Written by models/export/reference_outputs.py, which describes the format."],
          lines + [f"sgd_loss {SGD_LEARNING_RATE} {losses}"])


if __name__ == "__main__":
    main()
