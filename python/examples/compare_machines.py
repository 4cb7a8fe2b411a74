#!/usr/bin/env python3
"""What a network of the zoo would take on several machines and in several precisions, and a report
of the fastest.

    python3 python/examples/compare_machines.py zoo:bert_large --report=bert.html
"""

import argparse

import isomer


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model", help="a network of the zoo, or an ONNX file")
    parser.add_argument("--machines", nargs="+", default=["dgx_a100", "dgx_h100"])
    parser.add_argument("--precisions", nargs="+", default=["float32", "bfloat16"])
    parser.add_argument("--optimizer", default="adam")
    parser.add_argument("--time_limit", type=float, default=10, help="seconds of each search")
    parser.add_argument("--report", help="the page of the fastest plan")
    arguments = parser.parse_args()

    model = isomer.load(arguments.model)
    print(model)
    print(f"{'machine':12} {'precision':9} {'step':>10} {'memory':>10}  plan")
    plans = {}
    for name in arguments.machines:
        machine = isomer.Machine(name, nodes=1)
        for precision in arguments.precisions:
            try:
                plan = isomer.optimize(model, machine, precision=precision,
                                       optimizer=arguments.optimizer,
                                       time_limit=arguments.time_limit)
            except isomer.DoesNotFit as misfit:
                print(f"{name:12} {precision:9} {misfit}")
                continue
            plans[name, precision] = plan
            print(f"{name:12} {precision:9} {plan.predicted_step_us / 1e3:7.2f} ms "
                  f"{plan.predicted_peak_bytes / 2**30:6.2f} GiB  {plan.headline.split(':')[0]}")
    if not plans:
        raise SystemExit("nothing fits")

    (name, precision), best = min(plans.items(), key=lambda item: item[1].predicted_step_us)
    print(f"\nThe fastest: {precision} on {name}, {best.headline}")

    # The same plan elsewhere, without a new search.
    for other in arguments.machines:
        if other != name and isomer.Machine(other, nodes=1).devices >= best.devices:
            there = best.price(isomer.Machine(other, nodes=1))
            print(f"that plan on {other}: {there.predicted_step_us / 1e3:.2f} ms")
    if arguments.report:
        best.report(arguments.report)
        print(f"written to {arguments.report}")


if __name__ == "__main__":
    main()
