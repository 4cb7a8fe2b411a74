"""Writes a small decoder with keys and values of earlier tokens, as Hugging Face's optimum exports
it (decoder_with_past_model.onnx): inputs past_key_values.I.key and .value, outputs present.I.key and
.value that are one token longer, an attention mask and positions. Its weights are drawn.

Usage: make_decoder.py OUT.onnx TOKENS.txt

TOKENS.txt gets what ONNX Runtime makes of it: a line with the prompt, and one with the tokens that
follow, each the likeliest. Needs the packages onnx, onnxruntime and numpy.
"""

import sys

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

LAYERS, HIDDEN, HEADS, VOCABULARY, PLACES = 2, 32, 4, 97, 64
HEAD = HIDDEN // HEADS
PROMPT, NEW_TOKENS = [5, 17, 60, 3], 20
LOWEST = float(np.finfo(np.float32).min)


class Builder:
    def __init__(self):
        self.nodes, self.values = [], []
        self.draws = np.random.default_rng(7)

    def value(self, name, array):
        self.values.append(numpy_helper.from_array(np.asarray(array), name))
        return name

    def weight(self, name, *shape):
        scale = 0.02 if len(shape) == 1 else 1.2 / np.sqrt(shape[0])
        return self.value(name, (scale * self.draws.standard_normal(shape)).astype(np.float32))

    def call(self, kind, inputs, output, **attributes):
        self.nodes.append(helper.make_node(kind, inputs, [output], name=output, **attributes))
        return output

    def linear(self, x, inputs, outputs, name):
        product = self.call("MatMul", [x, self.weight(name + ".weight", inputs, outputs)],
                            name + "/product")
        return self.call("Add", [product, self.weight(name + ".bias", outputs)], name)

    def norm(self, x, name):
        scale = self.value(name + ".weight", np.ones(HIDDEN, np.float32))
        return self.call("LayerNormalization", [x, scale, self.weight(name + ".bias", HIDDEN)],
                         name, axis=-1)

    def heads(self, x, name):
        shape = self.value(name + "/shape", np.array([0, 0, HEADS, HEAD], np.int64))
        apart = self.call("Reshape", [x, shape], name + "/apart")
        return self.call("Transpose", [apart], name + "/heads", perm=[0, 2, 1, 3])

    def layer(self, x, mask, index):
        name = f"layers.{index}"
        y = self.norm(x, name + ".norm")
        q, k, v = (self.heads(self.linear(y, HIDDEN, HIDDEN, f"{name}.{part}"), f"{name}.{part}")
                   for part in ("query", "key", "value"))
        past, present = f"past_key_values.{index}", f"present.{index}"
        k = self.call("Concat", [past + ".key", k], present + ".key", axis=2)
        v = self.call("Concat", [past + ".value", v], present + ".value", axis=2)
        turned = self.call("Transpose", [k], name + "/turned", perm=[0, 1, 3, 2])
        scores = self.call("MatMul", [q, turned], name + "/scores")
        size = self.value(name + "/size", np.float32(np.sqrt(HEAD)))
        scores = self.call("Add", [self.call("Div", [scores, size], name + "/scaled"), mask],
                           name + "/masked")
        weights = self.call("Softmax", [scores], name + "/softmax", axis=-1)
        y = self.call("Transpose", [self.call("MatMul", [weights, v], name + "/context")],
                      name + "/rows", perm=[0, 2, 1, 3])
        shape = self.value(name + "/merged_shape", np.array([0, 0, HIDDEN], np.int64))
        y = self.linear(self.call("Reshape", [y, shape], name + "/merged"), HIDDEN, HIDDEN,
                        name + ".output")
        x = self.call("Add", [x, y], name + "/residual")
        y = self.linear(self.norm(x, name + ".norm2"), HIDDEN, 4 * HIDDEN, name + ".up")
        y = self.linear(self.call("Relu", [y], name + "/relu"), 4 * HIDDEN, HIDDEN, name + ".down")
        return self.call("Add", [x, y], name + "/residual2")


def decoder():
    b = Builder()
    ids = b.call("Gather", [b.weight("tokens", VOCABULARY, HIDDEN), "input_ids"], "embedded")
    places = b.call("Gather", [b.weight("positions", PLACES, HIDDEN), "position_ids"], "placed")
    x = b.call("Add", [ids, places], "x")
    # 0 where the mask is 1, the lowest number where it is 0: [batch, 1, 1, total].
    seen = b.call("Cast", ["attention_mask"], "seen", to=TensorProto.FLOAT)
    unseen = b.call("Sub", [b.value("one", np.float32(1)), seen], "unseen")
    lowest = b.call("Mul", [unseen, b.value("lowest", np.float32(LOWEST))], "lowest_unseen")
    mask = b.call("Unsqueeze", [lowest, b.value("axes", np.array([1, 2], np.int64))], "mask")
    for index in range(LAYERS):
        x = b.layer(x, mask, index)
    b.linear(b.norm(x, "norm"), HIDDEN, VOCABULARY, "logits")
    integers, floats = TensorProto.INT64, TensorProto.FLOAT
    inputs = [helper.make_tensor_value_info("input_ids", integers, ["batch", 1]),
              helper.make_tensor_value_info("attention_mask", integers, ["batch", "total"]),
              helper.make_tensor_value_info("position_ids", integers, ["batch", 1])]
    outputs = [helper.make_tensor_value_info("logits", floats, ["batch", 1, VOCABULARY])]
    for index in range(LAYERS):
        for kind in ("key", "value"):
            inputs.append(helper.make_tensor_value_info(
                f"past_key_values.{index}.{kind}", floats, ["batch", HEADS, "past", HEAD]))
            outputs.append(helper.make_tensor_value_info(
                f"present.{index}.{kind}", floats, ["batch", HEADS, "total", HEAD]))
    graph = helper.make_graph(b.nodes, "decoder", inputs, outputs, b.values)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.checker.check_model(model)
    return model


def likeliest_tokens(model):
    """Of one sample, with pasts that grow from nothing."""
    session = onnxruntime.InferenceSession(model.SerializeToString(),
                                           providers=["CPUExecutionProvider"])
    names = [o.name for o in session.get_outputs()]
    past = {f"past_key_values.{i}.{kind}": np.zeros((1, HEADS, 0, HEAD), np.float32)
            for i in range(LAYERS) for kind in ("key", "value")}
    tokens = list(PROMPT)
    for place in range(len(PROMPT) + NEW_TOKENS - 1):
        feeds = {"input_ids": np.array([[tokens[place]]], np.int64),
                 "attention_mask": np.ones((1, place + 1), np.int64),
                 "position_ids": np.array([[place]], np.int64), **past}
        results = dict(zip(names, session.run(names, feeds)))
        past = {name: results[name.replace("past_key_values", "present")] for name in past}
        if place + 1 == len(tokens):
            tokens.append(int(results["logits"][0, -1].argmax()))
    return tokens[len(PROMPT):]


def main():
    model = decoder()
    onnx.save(model, sys.argv[1])
    with open(sys.argv[2], "w") as file:
        for tokens in (PROMPT, likeliest_tokens(model)):
            file.write(" ".join(map(str, tokens)) + "\n")


if __name__ == "__main__":
    main()
