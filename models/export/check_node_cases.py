#!/usr/bin/env python3
"""Runs every node test case of the onnx package through isomer-run, and counts the verdicts.

    pip install onnx==1.19.1
    python3 models/export/check_node_cases.py [--program=build/release/bin/isomer-run]
        [--match=PART_OF_A_NAME] [--list=VERDICT] [--cases=FOLDER]

The cases are the folders of onnx/backend/test/data/node of the package that python3 imports, or of
FOLDER: a model, its inputs, its outputs. A case agrees, differs, is refused (with a reason), or
crashes; the refusals are counted by reason, the commonest first, each with a case that has it.
--list names all cases of one verdict, with the line that isomer-run printed.
Exit code 1 where a case differs or crashes.
"""
import argparse
import collections
import pathlib
import re
import subprocess
import sys

VERDICTS = {0: "agrees", 1: "differs", 2: "refused"}
SECONDS = 60


def run(program, folder):
    """The verdict on a case, and the line that says why."""
    command = [program, str(folder / "model.onnx"), f"--test_data={folder}"]
    try:
        result = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS)
    except subprocess.TimeoutExpired:
        return "crashes", f"no answer in {SECONDS} s"
    lines = (result.stderr or result.stdout).splitlines()
    return VERDICTS.get(result.returncode, "crashes"), lines[-1] if lines else "no output"


def reason(line):
    """The line without what differs from case to case: paths, names of nodes and tensors."""
    text = re.sub(r"^error: ", "", line)
    text = re.sub(r"\S*/[^\s:]*: ", "", text)
    text = re.sub(r"node '[^']*' \('([^']*)'\)|node of '[^']*' \('([^']*)'\)",
                  lambda match: match.group(1) or match.group(2), text)
    return re.sub(r"(input|output|initializer) '[^']*'", r"\1", text)


def main():
    root = pathlib.Path(__file__).parents[2]
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--program", default=str(root / "build/release/bin/isomer-run"))
    parser.add_argument("--match", default="")
    parser.add_argument("--list", choices=[*VERDICTS.values(), "crashes"])
    parser.add_argument("--cases", type=pathlib.Path)
    flags = parser.parse_args()
    if flags.cases is None:
        import onnx

        flags.cases = pathlib.Path(onnx.__file__).parent / "backend/test/data/node"
    verdicts, reasons = collections.Counter(), collections.defaultdict(list)
    for folder in sorted(flags.cases.iterdir()):
        if flags.match not in folder.name or not (folder / "model.onnx").exists():
            continue
        verdict, line = run(flags.program, folder)
        verdicts[verdict] += 1
        if verdict == flags.list or verdict in ("differs", "crashes"):
            print(f"{folder.name}: {verdict}: {line}")
        if verdict == "refused":
            reasons[reason(line)].append(folder.name)
    for text, names in sorted(reasons.items(), key=lambda item: -len(item[1])):
        print(f"{len(names):5} refused: {text} ({names[0]})")
    print(", ".join(f"{verdicts[verdict]} {verdict}" for verdict in [*VERDICTS.values(), "crashes"]))
    sys.exit(verdicts["differs"] + verdicts["crashes"] > 0)


if __name__ == "__main__":
    main()
