#!/usr/bin/env python3
"""From a PyTorch module to a plan, whose step on virtual devices is PyTorch's own.

    python3 python/examples/torch_to_plan.py
"""

import sys

try:
    import torch
except ImportError:
    sys.exit("this example needs PyTorch: pip install torch")

import isomer


class Block(torch.nn.Module):
    """A layer of a transformer, and the head of a classifier."""

    def __init__(self, width=64, heads=4, classes=10):
        super().__init__()
        self.heads = heads
        self.query_key_value = torch.nn.Linear(width, 3 * width)
        self.out = torch.nn.Linear(width, width)
        self.norm = torch.nn.LayerNorm(width)
        self.wide = torch.nn.Linear(width, 4 * width)
        self.narrow = torch.nn.Linear(4 * width, width)
        self.head = torch.nn.Linear(width, classes)

    def forward(self, tokens):
        batch, length, width = tokens.shape
        parts = self.query_key_value(tokens).reshape(batch, length, 3, self.heads, -1)
        query, key, value = parts.permute(2, 0, 3, 1, 4)
        mixed = torch.nn.functional.scaled_dot_product_attention(query, key, value)
        tokens = self.norm(tokens + self.out(mixed.transpose(1, 2).reshape(batch, length, width)))
        tokens = tokens + self.narrow(torch.nn.functional.gelu(self.wide(tokens)))
        return self.head(tokens.mean(dim=1))


def main():
    torch.manual_seed(0)
    module = Block()
    tokens = torch.randn(16, 8, 64)
    labels = torch.randint(0, 10, (16,))

    # The module is exported on the spot; shapes are those of the example.
    model = isomer.load(module, tokens)
    print(model)
    plan = isomer.optimize(model, isomer.Machine("laptop_cpu", devices_per_node=4),
                           loss="cross_entropy", time_limit=30)
    print(plan.headline)
    assert plan.verify(model)

    # What the loss compares with is an input besides the module's own.
    loss_input = next(tensor.name for tensor in plan.inputs if tensor.dtype == "i64")
    data_input = next(tensor.name for tensor in plan.inputs if tensor.dtype == "f32")
    outputs, gradients = plan.run({data_input: tokens, loss_input: labels})

    module.eval()
    loss = torch.nn.functional.cross_entropy(module(tokens), labels)
    loss.backward()
    print(f"loss: {float(outputs[plan.loss]):.6f} here, {float(loss):.6f} by PyTorch")
    assert abs(float(outputs[plan.loss]) - float(loss)) < 1e-5
    # Exporters rename and transpose some weights; those that kept their names are compared.
    compared = 0
    for name, parameter in module.named_parameters():
        found = gradients.get(name)
        if found is None or found.shape != tuple(parameter.shape):
            continue
        assert torch.allclose(torch.from_numpy(found), parameter.grad, atol=1e-5), name
        compared += 1
    print(f"{compared} of {len(gradients)} gradients have PyTorch's names and shapes, and its values")


if __name__ == "__main__":
    main()
