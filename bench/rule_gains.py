#!/usr/bin/env python3
"""What the rules of plans gain, by the pages that isomer-optimize --report=PAGE writes.

    bench/rule_gains.py PAGE.html..

A line for each rule without parallel operators: what its steps gain of the step of the plan where
that is most, how often it is used there, in how many plans it is, and what it says. A step gains the
cost model's time of the calls that it replaces, less that of those that it puts there, forward and in
training backward. Plans of several devices are left out: there, a call that a step replaces may be
split by a later one. A rule below 0 is one whose gain comes with the next.
"""
import json
import re
import sys

PARALLEL = re.compile(r'\b(partition|combine|replicate|reduce|concat_partials)\(')


def page_of(path):
    with open(path, encoding='utf-8') as file:
        text = file.read()
    found = re.search(r'<script id="data" type="application/json">(.*?)</script>', text, re.DOTALL)
    if not found:
        raise SystemExit(f'error: {path}: no page of a plan')
    return json.loads(found.group(1))


def main():
    if len(sys.argv) < 2:
        raise SystemExit(__doc__)
    rules = {}  # id: [(share, us, times, model)], equation
    for path in sys.argv[1:]:
        page = page_of(path)
        if page['report']['devices'] != 1:
            print(f'{path}: of several devices, left out', file=sys.stderr)
            continue
        step_us = page['report']['predicted_step_us']
        equations = {rule['id']: rule['equation'] for rule in page['rules']}
        gains = {}
        for row in page.get('derivation', {}).get('rows', []):
            if not row['rule'] or 'task_us_before' not in row:
                continue
            us, times = gains.get(row['rule'], (0, 0))
            gains[row['rule']] = (us + row['task_us_before'] - row['task_us_after'],
                                  times + row['times'])
        for rule, (us, times) in gains.items():
            equation = equations[rule]
            if PARALLEL.search(equation):
                continue
            uses, _ = rules.setdefault(rule, ([], equation))
            uses.append((us / step_us, us, times, page['report']['model']))
    print(f'{"of step":>8} {"us":>9} {"steps":>6} {"plans":>6}  most in, rule')
    for rule, (uses, equation) in sorted(rules.items(), key=lambda item: -max(item[1][0])[0]):
        share, us, times, model = max(uses)
        print(f'{100 * share:7.2f}% {us:9.1f} {times:6d} {len(uses):6d}  {model}  {rule}\n'
              f'{"":34}{equation}')


if __name__ == '__main__':
    main()
