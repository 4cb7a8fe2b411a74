#!/usr/bin/env python3
"""Makes tests/data/onnx: small ONNX test cases, in folders of what isomer-run --test_data is to say.

    python3 models/export/make_onnx_cases.py [FOLDER]

Most are cases of the operator tests that come with the onnx package (1.14 or later; the cases are
for opset 19 and below), chosen for what they ask of the reader; the rest is put together here.
"""
import pathlib
import shutil
import sys

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

# Of onnx/backend/test/data/node.
AGREE = """
    add_bcast and_bcast3v1d argmax_default_axis_example averagepool_2d_precomputed_pads
    basic_conv_with_padding batchnorm_epsilon cast_FLOAT_to_FLOAT16 clip_example
    compress_0 constantofshape_float_ones convtranspose_pads cumsum_1d_exclusive expand_dim_changed
    gather_0
    gelu_default_1 gemm_default_vector_bias greater_equal_expanded instancenorm_epsilon
    layer_normalization_2d_axis1 lstm_defaults max_int32 onehot_with_axis
    reduce_sum_default_axes_keepdims_example reshape_negative_dim scatter_elements_with_axis
    slice_neg_steps softmax_axis_0 split_variable_parts_2d_opset18 squeeze tile_precomputed top_k
    transpose_all_permutations_0 where_example
""".split()
REFUSED = """add_uint8 nonmaxsuppression_limit_output_size sequence_insert_at_back
    string_concat slice_start_out_of_bounds""".split()


def tensor_type(name, shape, dtype=TensorProto.FLOAT):
    return helper.make_tensor_value_info(name, dtype, shape)


def save_case(folder, nodes, inputs, outputs, values, expected, opset, initializers=(), external=False):
    """`values` and `expected` are arrays in the order of the inputs and outputs."""
    graph = helper.make_graph(nodes, "graph", inputs, outputs, initializers)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)
    data = folder / "test_data_set_0"
    data.mkdir(parents=True)
    if external:
        onnx.save(model, folder / "model.onnx", save_as_external_data=True, location="weights.bin",
                  size_threshold=0)
    else:
        onnx.save(model, folder / "model.onnx")
    for stem, arrays in (("input", values), ("output", expected)):
        for i, array in enumerate(arrays):
            path = data / f"{stem}_{i}.pb"
            path.write_bytes(numpy_helper.from_array(np.asarray(array)).SerializeToString())


def own_cases(root):
    f32 = np.float32
    x = np.arange(12, dtype=f32).reshape(3, 4) / 4 - 1
    w = np.linspace(-1, 1, 8, dtype=f32).reshape(4, 2)
    relu = helper.make_node("Relu", ["x"], ["y"])
    save_case(root / "differ/value", [relu], [tensor_type("x", ["n", 4])],
              [tensor_type("y", ["n", 4])], [x], [np.maximum(x, 0) + f32(0.01)], 9)
    save_case(root / "differ/integer", [helper.make_node("Add", ["x", "x"], ["y"])],
              [tensor_type("x", [2], TensorProto.INT64)], [tensor_type("y", [2], TensorProto.INT64)],
              [np.array([1, 2])], [np.array([2, 5])], 13)
    save_case(root / "agree/external_weights", [helper.make_node("MatMul", ["x", "w"], ["y"])],
              [tensor_type("x", ["n", 4])], [tensor_type("y", ["n", 2])], [x], [x @ w], 13,
              [numpy_helper.from_array(w, "w")], external=True)
    # Before opset 13 Softmax takes all dims from its axis on as one.
    e = np.exp(x - x.max())
    save_case(root / "agree/softmax_of_opset_9", [helper.make_node("Softmax", ["x"], ["y"], axis=0)],
              [tensor_type("x", [3, 4])], [tensor_type("y", [3, 4])], [x], [e / e.sum()], 9)
    # An If whose condition is a shape, and an output that is an input.
    branch = lambda name, op: helper.make_graph([helper.make_node(op, ["x"], ["taken"])], name, [],
                                                [tensor_type("taken", None)])
    nodes = [helper.make_node("Shape", ["x"], ["s"]),
             helper.make_node("Gather", ["s", "one"], ["size"], axis=0),
             helper.make_node("Equal", ["size", "four"], ["is_four"]),
             helper.make_node("If", ["is_four"], ["y"], then_branch=branch("yes", "Neg"),
                              else_branch=branch("no", "Abs")),
             helper.make_node("Identity", ["x"], ["z"])]
    ints = lambda name, value: numpy_helper.from_array(np.array(value, dtype=np.int64), name)
    save_case(root / "agree/if_of_a_shape", nodes, [tensor_type("x", ["n", "m"])],
              [tensor_type("y", ["n", "m"]), tensor_type("z", ["n", "m"])], [x], [-x, x], 13,
              [ints("one", 1), ints("four", 4)])
    # The condition is an input, which becomes a constant.
    save_case(root / "agree/if_of_an_input",
              [helper.make_node("If", ["b"], ["y"], then_branch=branch("yes", "Neg"),
                                else_branch=branch("no", "Abs"))],
              [tensor_type("x", [3, 4]), tensor_type("b", [], TensorProto.BOOL)],
              [tensor_type("y", [3, 4])], [x, np.bool_(True)], [-x], 13)


def main():
    root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1
                        else pathlib.Path(__file__).parents[2] / "tests/data/onnx")
    shutil.rmtree(root, ignore_errors=True)
    source = pathlib.Path(onnx.__file__).parent / "backend/test/data/node"
    for verdict, names in (("agree", AGREE), ("refused", REFUSED)):
        for name in names:
            shutil.copytree(source / f"test_{name}", root / verdict / name)
    own_cases(root)


if __name__ == "__main__":
    main()
