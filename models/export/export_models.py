#!/usr/bin/python3
"""Writes the ONNX files of models/data. Run: /usr/bin/python3 models/export/export_models.py

Needs Debian's python3-torch. The same torch version writes the same bytes every time.
"""

import io

import torch

import networks

OPSET = 13


def export(model, example, file_name, input_name, output_name, *, weights=True, **options):
    """Exports with weights as initializers, or, graph only, as further graph inputs."""
    if not weights:
        options.update(export_params=False, keep_initializers_as_inputs=True,
                       do_constant_folding=False)
    buffer = io.BytesIO()
    torch.onnx.export(model, (example,), buffer, opset_version=OPSET,
                      input_names=[input_name], output_names=[output_name],
                      **{"do_constant_folding": True, **options})
    path = networks.DATA_DIR / file_name
    path.write_bytes(buffer.getvalue())
    print(f"{path}: {len(buffer.getvalue())} bytes")


def main():
    networks.DATA_DIR.mkdir(exist_ok=True)
    image = torch.zeros(networks.DIGITS_BATCH, 1, 8, 8)
    digits = networks.build_digits_cnn()
    export(digits, image, "digits_cnn.onnx", "image", "logits")
    export(digits, image, "digits_cnn_dynamic.onnx", "image", "logits", weights=False,
           dynamic_axes={"image": {0: "batch"}, "logits": {0: "batch"}})

    export(networks.build_bert_tiny(), networks.bert_input_ids(), "bert_tiny.onnx",
           "input_ids", "encoded")

    # PRESERVE on a network in eval mode: BatchNormalization stays a node of its own with
    # inference semantics; EVAL would fold it into the convolution before it.
    side = networks.RESNEXT_IMAGE
    export(networks.build_resnext50(), torch.zeros(networks.RESNEXT_BATCH, 3, side, side),
           "resnext50.onnx", "image", "logits", weights=False,
           training=torch.onnx.TrainingMode.PRESERVE)


if __name__ == "__main__":
    main()
