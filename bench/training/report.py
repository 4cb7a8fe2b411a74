"""Compares the runs of a training and writes them: NAME.tsv, NAME.svg and NAME.md."""
import collections
import math
import os
import re

STEPS = 300
TOLERANCE = 1e-3  # of a step's loss, relative to the reference's
COLOURS = ["#046", "#c40", "#282", "#808", "#a80", "#08a", "#d06", "#666", "#64c", "#3a6", "#000"]


def differences(reference, losses):
    """Of each of the first STEPS steps, relative to the reference."""
    return [abs(loss - expected) / abs(expected)
            for expected, loss in zip(reference[:STEPS], losses[:STEPS], strict=True)]


def splits_of(page):
    """How often calls are split in which way, by what isomer-optimize prints of a plan."""
    counts = collections.Counter()
    for line in page.split("\n\n")[1].split("\n")[1:]:
        if match := re.match(r"\s*(\d+)\s.*\s[\d.]+ [num]?s  (.*)$", line):
            said = re.sub(r", though .*| \((row|column)-parallel\)| of a node| in \d+ micro-batches", "", match[2])
            said = re.sub(r"\bdim \d+|\b[ijkn]\d\b", "a dim", said)
            counts[said] += int(match[1])
    return counts


def spread(values):
    return max(values) - min(values)


def complaints_of(training, rows):
    """What is not as it should be, a line each."""
    reference, seeds = rows[0].summary, [row.summary for row in rows if row.seed]
    complaints = []
    kinds = collections.defaultdict(list)
    for row in rows:
        if row.seed:
            continue
        where = f"{training.name}: {row.name}"
        for step, off in enumerate(differences(reference["loss"], row.summary["loss"])):
            if not off <= TOLERANCE:
                complaints.append(f"{where}: the loss of step {step + 1} is off by {off:.1e}, of {TOLERANCE:.0e} allowed")
                break
        for metric, expected in reference["metrics"].items():
            # Without other seeds, what the loss of a step may be off.
            noise = spread([seed["metrics"][metric] for seed in seeds]) if len(seeds) > 1 else TOLERANCE * expected
            if not abs(row.summary["metrics"][metric] - expected) <= noise:
                complaints.append(f"{where}: {metric} is {row.summary['metrics'][metric]:.6g}, "
                                  f"and {expected:.6g} on one device; {noise:.2g} is noise")
        if row.plan is not None:
            kinds[row.plan.devices, row.headline, str(sorted(row.splits.items()))].append(row.name)
    for same in kinds.values():
        if len(same) > 1:
            complaints.append(f"{training.name}: one plan under several names: {'; '.join(same)}")
    return complaints


def table(rows):
    """Losses by step, a column a run."""
    lines = ["\t".join(["step"] + [row.name for row in rows])]
    for step in range(min(STEPS, len(rows[0].summary["loss"]))):
        lines.append("\t".join([str(step + 1)] + [f"{row.summary['loss'][step]:.7g}" for row in rows]))
    return "\n".join(lines) + "\n"


class Panel:
    """A plot of numbers by step."""

    def __init__(self, left, low, high, ticks, say):
        self.left, self.low, self.high = left, low, high
        self.parts = [f'<rect x="{left}" y="30" width="380" height="300" fill="none" stroke="#888"/>']
        for value in ticks:
            y = self.y(value)
            self.parts.append(f'<line x1="{left}" x2="{left + 380}" y1="{y:.1f}" y2="{y:.1f}" stroke="#ddd"/>'
                              f'<text x="{left - 6}" y="{y + 4:.1f}" text-anchor="end">{say(value)}</text>')
        for step in range(0, STEPS + 1, 100):
            self.parts.append(f'<text x="{self.x(step):.0f}" y="346" text-anchor="middle">{step}</text>')

    def x(self, step):
        return self.left + 380 * step / STEPS

    def y(self, value):
        if not value <= self.high:  # what is no number is on top, too
            value = self.high
        return 330 - 300 * (max(value, self.low) - self.low) / (self.high - self.low)

    def line(self, values, colour, title, width=1):
        points = " ".join(f"{self.x(step + 1):.0f},{self.y(value):.1f}" for step, value in enumerate(values))
        self.parts.append(f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="{width}">'
                          f"<title>{title}</title></polyline>")


def picture(training, rows):
    """Losses on the left, on the right how far each plan's are from the reference's."""
    top = math.ceil(max(max(row.summary["loss"][:STEPS]) for row in rows) * 10) / 10
    losses = Panel(60, 0, top, [top * i / 4 for i in range(5)], lambda value: f"{value:.2f}")
    apart = Panel(520, -8, -2, range(-8, -1), lambda value: f"1e{value}")
    y = apart.y(math.log10(TOLERANCE))
    apart.parts.append(f'<line x1="520" x2="900" y1="{y}" y2="{y}" stroke="#c00" stroke-dasharray="4"/>')
    legend = []
    plans = [row for row in rows if row.plan is not None or row.name == "PyTorch"]
    for row in rows[1:]:
        if row.seed:
            losses.line(row.summary["loss"][:STEPS], "#ccc", row.name)
        elif row not in plans:
            off = differences(rows[0].summary["loss"], row.summary["loss"])
            apart.line([math.log10(value) if value else apart.low for value in off], "#bbb", row.name, 3)
    losses.line(rows[0].summary["loss"][:STEPS], "#999", rows[0].name, 3)
    for number, row in enumerate(plans):
        colour = COLOURS[number % len(COLOURS)]
        off = differences(rows[0].summary["loss"], row.summary["loss"])
        losses.line(row.summary["loss"][:STEPS], colour, row.name)
        apart.line([math.log10(value) if value else apart.low for value in off], colour, row.name)
        x, y = 60 + number % 2 * 460, 372 + number // 2 * 17
        legend.append(f'<text x="{x}" y="{y}" fill="{colour}">{row.name}</text>')
    height = 382 + (len(plans) - 1) // 2 * 17
    return "\n".join(
        [f'<svg xmlns="http://www.w3.org/2000/svg" width="920" height="{height}" font-family="sans-serif" font-size="11">',
         '<rect width="100%" height="100%" fill="white"/>',
         f'<text x="60" y="20">loss by step: {rows[0].name} (wide), other seeds (grey), plans</text>',
         f'<text x="520" y="20">how far from {rows[0].name}, relative; another rounding (wide, grey)</text>']
        + losses.parts + apart.parts + legend + ["</svg>"]) + "\n"


def shown(metric, value):
    if value is None:
        return ""
    return f"{100 * value:.2f} %" if "accuracy" in metric else f"{value:.5f}"


def page(training, rows, commands):
    metrics = list(rows[0].summary["metrics"])
    text = [f"# {training.title}", "",
            f"Written by `bench/training/train.py --only={training.name}{training.wants}`. {training.about}", "",
            f"![losses, and how far plans are apart]({training.name}.svg)", "",
            f"[{training.name}.tsv]({training.name}.tsv) has the losses of the first {STEPS} steps. *Off* is the largest "
            f"difference to the loss of {rows[0].name} in one of these steps, relative; metrics are those at the "
            f"end, after {len(rows[0].summary['loss'])} steps.", "",
            "| run | off | in step | " + " | ".join(m.replace("_", " ") for m in metrics) + " | as isomer-optimize says |",
            "|---|--:|--:|" + "--:|" * len(metrics) + "---|"]
    for row in rows:
        cells = [row.name, "", ""]
        if row is not rows[0] and not row.seed:
            off = differences(rows[0].summary["loss"], row.summary["loss"])
            step = max(range(len(off)), key=off.__getitem__)
            cells[1:] = [f"{off[step]:.1e}", str(step + 1)]
        cells += [shown(metric, row.summary["metrics"].get(metric)) for metric in metrics]
        said = "; ".join(f"{count} x {split}" for split, count in row.splits.most_common(3))
        cells.append(f"{row.headline}: {said}" if said else row.headline)
        text.append("| " + " | ".join(cells) + " |")
    seeds = [row.summary for row in rows if row.seed]
    if len(seeds) > 1:
        ranges = ", ".join(f"{m.replace('_', ' ')} {shown(m, spread([s['metrics'][m] for s in seeds]))}" for m in metrics)
        text += ["", f"Three seeds of one device are apart by: {ranges}."]
    text += ["", "Commands (data and plans in a folder of their own):", "", "```sh", *commands, "```", ""]
    return "\n".join(text)


def write(training, rows, commands, folder):
    """Writes the results of a training into `folder`, and returns what is wrong with them."""
    os.makedirs(folder, exist_ok=True)
    for ending, text in (("tsv", table(rows)), ("svg", picture(training, rows)), ("md", page(training, rows, commands))):
        with open(os.path.join(folder, f"{training.name}.{ending}"), "w") as file:
            file.write(text)
    return complaints_of(training, rows)
