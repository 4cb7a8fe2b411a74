#!/usr/bin/env python3
"""From an ONNX file to a plan: searched, verified, run beside the unoptimised model, saved.

    python3 python/examples/onnx_to_plan.py models/data/bert_tiny.onnx --out=bert.plan
"""

import argparse

import isomer


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model", help="an ONNX file, or a network of the zoo")
    parser.add_argument("--machine", default="laptop_cpu", help="a preset or a machine file")
    parser.add_argument("--devices", type=int, default=4, help="of one node")
    parser.add_argument("--out", help="the plan file to write")
    arguments = parser.parse_args()

    model = isomer.load(arguments.model)
    machine = isomer.Machine(arguments.machine, nodes=1, devices_per_node=arguments.devices)
    print(model)
    print(machine)

    # Any option of isomer-optimize is a keyword. Ctrl-C ends the search with the best plan so far.
    plan = isomer.optimize(model, machine, optimizer="adam", time_limit=30)
    print(plan.headline)
    baseline = plan.baselines.get("data_parallel")
    if baseline is not None:
        print(f"data parallel would take {baseline.step_us / plan.predicted_step_us:.2f} times as long")

    print("The operators that take longest:")
    for operator in sorted(plan.operators, key=lambda op: -op.time_us)[:5]:
        print(f"  {operator.time_us:8.1f} us  {operator.kind} {operator.name}: {operator.split}")

    # The certificate: each rewrite is shown to change no value, and the graph to be the model's.
    verification = plan.verify(model)
    if not verification:
        raise SystemExit(f"refused: {verification.reason}")
    print(f"verified: {verification.steps} steps, {verification.steps_by}")

    # One step on virtual devices: NumPy arrays in, NumPy arrays out.
    inputs = plan.random_inputs(seed=1)
    outputs, gradients = plan.run(inputs)
    print("outputs:", {name: array.shape for name, array in outputs.items()})
    print("gradients:", len(gradients))

    # The same step of the model as it is, on one device, compared.
    check = plan.check(inputs)
    print(f"largest relative error {check.max_relative_error:.2g}:",
          "agrees" if check else "DOES NOT AGREE")
    if arguments.out:
        plan.save(arguments.out)
        print(f"isomer-run {arguments.out} --check does that, too")


if __name__ == "__main__":
    main()
