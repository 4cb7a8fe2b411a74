#!/usr/bin/env python3
"""TASO's rules, as TENSAT's repository has them in text, in the format that isomer-verify taso reads.

    bench/tensat_rules.py single_rules.txt multi_rules.txt >taso.textproto
    isomer-verify taso taso.textproto

The files are those of github.com/uwplse/tensat: equations one after the other, in the second file
two for each rule of two outputs. Inputs are those of TASO's generator: input_1 to 6 matrices, 7 to 9
images, 10 to 12 kernels of 3 x 3, 13 to 15 of 1 x 3, 16 to 18 of 3 x 1, 19 of 3 x 3 for one group a
channel, 20 a number. Rules that differ in names, in the side that comes first, or in kernels' sizes
where nothing is enlarged, are written once; how many there are is said on stderr.
"""
import re
import sys

OPS = {'matmul': 18, 'ewadd': 16, 'ewmul': 17, 'smul': 19, 'relu': 8, 'transpose': 15, 'concat': 12,
       'split': 13, 'conv2d': 3, 'poolavg': 7, 'poolmax': 6, 'enlarge': 20}
CONSTANTS = {'Iconv': 23, 'Cpool': 25, 'Imatmul': 22, 'Iewmul': 24}
(NUM_INPUTS, NUM_OUTPUTS, KERNEL_H, KERNEL_W, STRIDE_H, STRIDE_W, PAD, ACTI, NUMDIM, AXIS,
 PERM) = (1, 2, 4, 5, 6, 7, 8, 9, 10, 11, 12)


def kernel_size(name):
    number = int(name.split('_')[1])
    return (1, 3) if 13 <= number <= 15 else (3, 1) if 16 <= number <= 18 else (3, 3)


def class_of(name):
    number = int(name.split('_')[1])
    return ('matrix' if number <= 6 else 'image' if number <= 9 else 'number' if number == 20 else
            'depthwise' if number == 19 else 'kernel')


def equations(text):
    """Pairs of terms: a name, a number, or (operator, operands..)."""
    tokens = re.findall(r'==|[(),]|[A-Za-z]\w*|\d+', text)
    at = 0

    def term():
        nonlocal at
        token = tokens[at]
        at += 1
        if token.isdigit():
            return int(token)
        if at == len(tokens) or tokens[at] != '(':
            return token
        operands = []
        while tokens[at] != ')':
            at += 1
            operands.append(term())
        at += 1
        return (token, *operands)

    found = []
    while at < len(tokens):
        left = term()
        if at == len(tokens) or tokens[at] != '==':
            raise SystemExit(f'error: no "==" after equation {len(found)}')
        at += 1
        found.append((left, term()))
    return found


def tensors(term):
    """What a term computes on, without its parameters; numbers and sizes are parameters."""
    return [operand for operand in term[1:] if not isinstance(operand, int)]


def is_constant(term):
    return (term if isinstance(term, str) else term[0]) in CONSTANTS


def rank(term):
    if isinstance(term, str):
        return 2 if term == 'Imatmul' or class_of(term) == 'matrix' else 4
    return 4 if is_constant(term) else max(rank(operand) for operand in tensors(term)
                                           if operand != 'input_20')


def window(term):
    """The size of a kernel that a term computes."""
    if isinstance(term, str):
        return kernel_size(term)
    if term[0] == 'enlarge' or is_constant(term):
        return (term[1], term[2])
    return window(tensors(term)[0])


class Side:
    def __init__(self, inputs):
        self.ops, self.made, self.inputs = [], {}, inputs

    def add(self, term):
        """The operator and its output that a term is."""
        if isinstance(term, str) and not is_constant(term):
            return (self.inputs.setdefault(term, -1 - len(self.inputs)), 0)
        if term[0] in ('split_0', 'split_1'):
            return (self.add(term[1])[0], int(term[0][-1]))
        if term not in self.made:
            self.made[term] = None
            self.ops.append(self.operator(term))
            self.made[term] = len(self.ops) - 1
        return (self.made[term], 0)

    def operator(self, term):
        if is_constant(term):
            sizes = [] if isinstance(term, str) else [(KERNEL_H, term[1]), (KERNEL_W, term[2])]
            return CONSTANTS[term if isinstance(term, str) else term[0]], [], sizes
        name, numbers = term[0], [operand for operand in term[1:] if isinstance(operand, int)]
        operands = [self.add(operand) for operand in tensors(term)]
        parameters = []
        if name == 'matmul':
            parameters = [(ACTI, numbers[0] if numbers else 0)]
        elif name == 'concat':
            parameters = [(NUM_INPUTS, 2), (AXIS, numbers[0]), (NUMDIM, rank(term))]
        elif name == 'split':
            parameters = [(NUM_OUTPUTS, 2), (AXIS, numbers[0])]
        elif name == 'transpose':
            parameters = [(NUMDIM, 2), (PERM, 2)]
        elif name == 'enlarge':
            parameters = [(KERNEL_H, numbers[0]), (KERNEL_W, numbers[1])]
        elif name == 'conv2d':
            kernel = window(tensors(term)[1])
            parameters = list(zip((KERNEL_H, KERNEL_W), kernel)) + list(
                zip((STRIDE_H, STRIDE_W, PAD, ACTI), numbers))
        elif name in ('poolavg', 'poolmax'):
            parameters = list(zip((KERNEL_H, KERNEL_W, STRIDE_H, STRIDE_W, PAD), numbers))
        return OPS[name], operands, parameters

    def text(self, field):
        lines = []
        for kind, operands, parameters in self.ops:
            inputs = ' '.join(f'input {{ op_id: {op} ts_id: {ts} }}' for op, ts in operands)
            values = ' '.join(f'para {{ key: {key} value: {value} }}' for key, value in parameters)
            lines.append(f'  {field} {{ type: {kind} {inputs} {values} }}\n')
        return ''.join(lines)


def name_free(rule):
    """Equal for rules that are one rule, by the smaller of both directions."""
    keeps_sizes = 'enlarge' in str(rule)

    def renamed(sides):
        names, sizes = {}, {}

        def walk(term):
            if isinstance(term, tuple):
                return (term[0], *(walk(operand) for operand in term[1:]))
            if isinstance(term, int) or is_constant(term):
                return term
            size = kernel_size(term) if class_of(term) == 'kernel' else ''
            if size and not keeps_sizes:
                size = sizes.setdefault(size, len(sizes))
            return names.setdefault(term, f'{class_of(term)}{size}_{len(names)}')

        return str([[walk(term) for term in side] for side in sides])

    return min(renamed(rule), renamed(rule[::-1]))


def main():
    if len(sys.argv) != 3:
        raise SystemExit(__doc__)
    with open(sys.argv[1], encoding='utf-8') as file:
        rules = [([left], [right]) for left, right in equations(file.read())]
    with open(sys.argv[2], encoding='utf-8') as file:
        pairs = equations(file.read())
    for first, second in zip(pairs[::2], pairs[1::2]):
        rules.append(([first[0], second[0]], [first[1], second[1]]))
    seen = set()
    for rule in rules:
        key = name_free(rule)
        if key in seen:
            continue
        seen.add(key)
        inputs = {}
        sides = Side(inputs), Side(inputs)
        outputs = [[side.add(term) for term in terms] for side, terms in zip(sides, rule)]
        sys.stdout.write('rule {\n' + sides[0].text('src_op') + sides[1].text('dst_op'))
        for (op, ts), (other_op, other_ts) in zip(*outputs):
            sys.stdout.write(f'  mapped_output {{ src_op_id: {op} dst_op_id: {other_op} '
                             f'src_ts_id: {ts} dst_ts_id: {other_ts} }}\n')
        sys.stdout.write('}\n')
    print(f'{len(rules)} equations, {len(seen)} distinct rules', file=sys.stderr)


if __name__ == '__main__':
    main()
