#!/usr/bin/env python3
"""Plans of two rules files beside each other.

    bench/compare_rules.py SHIPPED.txt PLAN..

For each PLAN: PLAN.shipped.html and .json, PLAN.other.html and .json, which isomer-optimize --report
and --json wrote with the rules of SHIPPED.txt and with others. Prints a table, then for each plan
whose time differs the steps of the other one: what they gain by the cost model's times of the calls
that they replace and make, and what the rule says where the shipped file has none of that id.
"""
import json
import re
import statistics
import sys

from rule_gains import page_of

# The report's times are of doubles: equal plans may differ in the last digits.
ROUNDING = 1e-6


def read_json(path):
    with open(path, encoding='utf-8') as file:
        return json.load(file)


def without_inverse(rule):
    return rule.removesuffix('^-1')


def print_derivation(model, page, shipped):
    print(f'\n{model}:')
    equations = {rule['id']: rule['equation'] for rule in page['rules']}
    for row in page['derivation']['rows']:
        rule = row['rule']
        gain = row['task_us_before'] - row['task_us_after'] if 'task_us_before' in row else 0
        new = rule and without_inverse(rule) not in shipped
        print(f'{gain:9.1f} us {row["times"]:4d} x  {row["at"]}: {row["operators"]} -> {row["result"]}'
              f'  {rule or "stated"}{" (not shipped)" if new else ""}')
        if new:
            print(f'{"":20}{equations.get(rule, "")}')


def main():
    if len(sys.argv) < 3:
        raise SystemExit(__doc__)
    with open(sys.argv[1], encoding='utf-8') as file:
        shipped = set(re.findall(r'^  id: "(\w+)"', file.read(), re.MULTILINE))
    print('| network | as it is, us | shipped rules, us | other rules, us | other / shipped | searched, s |')
    print('|---|--:|--:|--:|--:|--:|')
    ratios, different = [], []
    for path in sys.argv[2:]:
        a, b = read_json(f'{path}.shipped.json'), read_json(f'{path}.other.json')
        before, after = a['predicted_step_us'], b['predicted_step_us']
        ratios.append(after / before)
        print(f'| {a["model"]} | {a["single_device"]["predicted_step_us"]:.1f} | {before:.1f} | {after:.1f} |'
              f' {after / before:.4f} | {a["search"]["seconds"]:.1f}, {b["search"]["seconds"]:.1f} |')
        if abs(after / before - 1) > ROUNDING:
            different.append((a['model'], page_of(f'{path}.other.html')))
    print(f'\n{len(ratios)} networks: {sum(r < 1 - ROUNDING for r in ratios)} faster, '
          f'{sum(r > 1 + ROUNDING for r in ratios)} slower, ratio at most {max(ratios):.4f}, '
          f'at least {min(ratios):.4f}, median {statistics.median(ratios):.4f}')
    for model, page in different:
        print_derivation(model, page, shipped)


if __name__ == '__main__':
    main()
