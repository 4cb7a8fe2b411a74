#!/usr/bin/env python3
"""What the rules of plans gain, by the pages that isomer-optimize --report=PAGE writes.

    bench/rule_gains.py [--without] [--rules=RULES.txt] PAGE.html..

A line for each rule without parallel operators: what its steps gain of the step of the plan where
that is most, how often it is used there, in how many plans it is, and what it says. A step gains the
cost model's time of the calls that it replaces, less that of those that it puts there, forward and in
training backward. Plans of several devices are left out: there, a call that a step replaces may be
split by a later one. A rule below 0 is one whose gain comes with the next.

--without: the search that PAGE.html.search has, a word a line, is run again without each of the plan's
rules, one at a time: what the step then takes more is what other rules cannot make good.
"""
import argparse
import json
import pathlib
import re
import subprocess
import sys
import tempfile

PARALLEL = re.compile(r'\b(partition|combine|replicate|reduce|concat_partials)\(')
SHIPPED_RULES = pathlib.Path(__file__).resolve().parents[1] / 'rules/default.txt'


def page_of(path):
    with open(path, encoding='utf-8') as file:
        text = file.read()
    found = re.search(r'<script id="data" type="application/json">(.*?)</script>', text, re.DOTALL)
    if not found:
        raise SystemExit(f'error: {path}: no page of a plan')
    return json.loads(found.group(1))


def split_rules(path):
    """What comes before the rules, and the text of each."""
    head, *blocks = re.split(r'^(?=rules \{)', pathlib.Path(path).read_text(encoding='utf-8'),
                             flags=re.MULTILINE)
    return head, {re.search(r'id: "(\w+)"', block).group(1): block for block in blocks}


def loss_without(rule, rules, page, step_us):
    """The share of `step_us` that the step takes more; infinite where there is no plan."""
    head, blocks = rules
    left_out = rule.removesuffix('^-1')  # a rule that was used backwards
    search = pathlib.Path(f'{page}.search').read_text(encoding='utf-8').splitlines()
    with tempfile.TemporaryDirectory() as folder:
        left, summary = pathlib.Path(folder, 'left.txt'), pathlib.Path(folder, 'summary.json')
        left.write_text(head + ''.join(block for name, block in blocks.items() if name != left_out),
                        encoding='utf-8')
        done = subprocess.run([*search, f'--rules={left}', f'--json={summary}',
                               f'--cache_dir={folder}/cache'], capture_output=True, check=False)
        if done.returncode:
            return float('inf')
        return json.loads(summary.read_text(encoding='utf-8'))['predicted_step_us'] / step_us - 1


def main():
    arguments = argparse.ArgumentParser(description=__doc__,
                                        formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument('pages', nargs='+')
    arguments.add_argument('--without', action='store_true')
    arguments.add_argument('--rules', default=SHIPPED_RULES)
    flags = arguments.parse_args()
    shipped = split_rules(flags.rules) if flags.without else None
    rules = {}  # id: [(share, us, times, model)], equation
    without = {}  # id: [(share that a step takes more, model)]
    for path in flags.pages:
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
            model = page['report']['model']
            uses.append((us / step_us, us, times, model))
            if flags.without:
                loss = loss_without(rule, shipped, path, step_us)
                without.setdefault(rule, []).append((loss, model))
    print(f'{"of step":>8} {"us":>9} {"steps":>6} {"plans":>6}  most in, rule')
    for rule, (uses, equation) in sorted(rules.items(), key=lambda item: -max(item[1][0])[0]):
        share, us, times, model = max(uses)
        print(f'{100 * share:7.2f}% {us:9.1f} {times:6d} {len(uses):6d}  {model}  {rule}\n'
              f'{"":34}{equation}')
        if rule in without:
            most, model = max(without[rule])
            least, _ = min(without[rule])
            print(f'{"":34}without it {least:+.2%} to {most:+.2%} of the step, most of {model}')


if __name__ == '__main__':
    try:
        main()
    except OSError as error:
        raise SystemExit(f'error: {error.filename}: {error.strerror}') from error
