#!/usr/bin/env python3
"""Runs every command of the documents, as who reads them would: those of one document in order, in
a folder of its own that has what the tree has. What is not run (exceptions.py) is checked for
programs, flags and files that there are not. Figures of documents that a command writes whole
(docs/lemmas.md) have to be what it writes.

Usage: commands_test.py BUILD [--all] [--times] [DOCUMENT..]
"""
import argparse
import filecmp
import os
import pathlib
import re
import resource
import shutil
import subprocess
import sys
import tempfile

import exceptions
from flags import Facts
from links import leading_nowhere
from markdown import blocks_of, code_in_text, commands_of, is_command

TREE = pathlib.Path(__file__).resolve().parents[2]
WRITTEN = ("docs", "rules")  # folders of which commands write documents
PYTHON = ("README.md", "docs/python.md")  # whose blocks of Python are one program each


class Report:

    def __init__(self):
        self.failures = []
        self.seconds = {}

    def fail(self, place, command, why):
        self.failures.append(f"{place}: {command}\n    {why}")


def cpu_s():
    """Seconds of all processes that have ended."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def documents():
    listed = subprocess.run(["git", "-C", TREE, "ls-files", "*.md"], text=True, capture_output=True)
    if listed.returncode == 0:
        return listed.stdout.split()
    skipped = ("build", ".git")
    return sorted(str(path.relative_to(TREE)) for path in TREE.rglob("*.md")
                  if path.relative_to(TREE).parts[0] not in skipped)


def matches(command, table, used):
    """Whether a line of the table is about the command. The patterns of all that are, are used."""
    found = {pattern for pattern, _ in table if re.search(pattern, command)}
    used |= found
    return bool(found)


def folder_like_the_tree(folder, build):
    for entry in TREE.iterdir():
        if entry.name in WRITTEN:
            shutil.copytree(entry, folder / entry.name)
        elif entry.name not in ("build", ".git"):
            (folder / entry.name).symlink_to(entry)
    (folder / "build").mkdir()
    (folder / "build/release").symlink_to(build)


def run(command, folder, environment):
    return subprocess.run(["bash", "-euo", "pipefail", "-c", command], cwd=folder, env=environment,
                          text=True, capture_output=True, stdin=subprocess.DEVNULL, check=False)


def lines_that_are_missing(said, printed):
    """Of the lines that the document shows, the first that does not follow in what was printed."""
    rest = iter([line.strip() for line in printed.split("\n")])
    return next((line for line in said if line != ".." and line not in rest), None)


def quicker(command):
    """The command with what makes it quick in front of its comment."""
    added = [flag for pattern, flag in exceptions.QUICKER if re.search(pattern, command)]
    return re.sub(r"(\s+#[^\n]*)?$", "".join(f" {flag}" for flag in added) + r"\1", command, count=1)


def check_document(name, commands, everything, folder, environment, report):
    done = set()
    for command in commands:
        if command.text in done:
            continue
        done.add(command.text)
        place = f"{name}:{command.line}"
        start = cpu_s()
        result = run(command.text if everything else quicker(command.text), folder, environment)
        report.seconds[f"{place}: {command.text}"] = cpu_s() - start
        print(f"{cpu_s() - start:6.1f} {place} {command.text[:100]}", flush=True)
        allowed = 1 if matches(command.text, exceptions.ANSWERS_NO, set()) else 0
        missing = lines_that_are_missing(command.output, result.stdout)
        if result.returncode != allowed:
            report.fail(place, command.text, f"ends with {result.returncode}: "
                        + (result.stderr or result.stdout).strip()[-2000:])
        elif missing:
            report.fail(place, command.text, f"no longer prints this line, or not there: {missing}")
    for part in WRITTEN:
        for path in (folder / part).rglob("*"):
            original = TREE / path.relative_to(folder)
            if path.is_file() and not filecmp.cmp(path, original, shallow=False):
                report.fail(name, str(path.relative_to(folder)), "is not what its command writes")


def check_python(name, text, folder, environment, report):
    blocks = blocks_of(text, "python")
    if not blocks:
        return
    start = cpu_s()
    program = "\n".join(block for _, block in blocks)
    result = subprocess.run([sys.executable, "-c", program], cwd=folder, env=environment, text=True,
                            capture_output=True, stdin=subprocess.DEVNULL, check=False)
    report.seconds[f"{name}: its Python"] = cpu_s() - start
    if result.returncode:
        report.fail(f"{name}:{blocks[0][0]}", "its Python", result.stderr.strip()[-2000:])


def can_run_python(build):
    try:
        import numpy  # noqa: F401
    except ImportError:
        return False
    return any((build / "python/isomer").glob("_isomer*.so"))


def main():
    arguments = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    arguments.add_argument("build", type=pathlib.Path)
    arguments.add_argument("document", nargs="*", help="of the tree; none: all")
    arguments.add_argument("--all", action="store_true", help="those, too, that take minutes")
    arguments.add_argument("--times", action="store_true", help="say what each takes, in seconds of CPU")
    flags = arguments.parse_intermixed_args()
    build = flags.build.resolve()

    report = Report()
    facts = Facts(str(TREE), str(build / "bin"))
    used = set()
    ran = named = 0
    with tempfile.TemporaryDirectory(prefix="isomer-documents.") as scratch:
        environment = dict(os.environ, PATH=f"{build / 'bin'}:{os.environ['PATH']}",
                           PYTHONPATH=str(build / "python"), XDG_CACHE_HOME=f"{scratch}/cache",
                           HOME=scratch, BIN=str(build / "bin"), OMPI_ALLOW_RUN_AS_ROOT="1",
                           OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1", OMPI_MCA_rmaps_base_oversubscribe="1")
        for name in documents():
            text = (TREE / name).read_text(encoding="utf-8")
            for line, why in leading_nowhere(TREE, name, text):
                report.fail(f"{name}:{line}", "a link", why)
            to_run = []
            for command in commands_of(text):
                unknown = list(facts.unknown(command.text))
                for line in unknown:
                    report.fail(f"{name}:{command.line}", command.text, line)
                named += 1
                matches(command.text, exceptions.ANSWERS_NO + exceptions.QUICKER, used)
                if not command.runs:
                    continue
                never = matches(command.text, exceptions.NOT_RUN, used)
                slow = matches(command.text, exceptions.SLOW, used) and not flags.all
                if not never and not slow and not unknown:
                    to_run.append(command)
            for line, code in code_in_text(text):
                if not is_command(code):
                    matches(code, exceptions.FLAGS_OF_OTHERS, used)
                    for flag in re.findall(r"(?<![\w-])--[\w-]+", code):
                        if not matches(flag, exceptions.FLAGS_OF_OTHERS, set()):
                            for unknown in facts.unknown_flags(flag):
                                report.fail(f"{name}:{line}", code, unknown)
            if flags.document and name not in flags.document:
                continue
            folder = pathlib.Path(scratch) / name.replace("/", "_")
            python = name in PYTHON and can_run_python(build)
            if not to_run and not python:
                continue
            folder.mkdir()
            folder_like_the_tree(folder, build)
            for command in exceptions.GIVEN.get(name, ()):
                result = run(command, folder, environment)
                if result.returncode:
                    report.fail(name, command, "is given, and fails: " + result.stderr)
            check_document(name, to_run, flags.all, folder, environment, report)
            if python:
                check_python(name, text, folder, environment, report)
            ran += len(to_run)
            shutil.rmtree(folder)
    for table in (exceptions.NOT_RUN, exceptions.SLOW, exceptions.QUICKER, exceptions.ANSWERS_NO,
                  exceptions.FLAGS_OF_OTHERS):
        for pattern, _ in table:
            if pattern not in used:
                report.fail("tests/documents/exceptions.py", pattern, "is about no command")
    if flags.times:
        for command, seconds in sorted(report.seconds.items(), key=lambda item: -item[1]):
            print(f"{seconds:7.1f} s  {command}")
    for failure in report.failures:
        print(f"error: {failure}", file=sys.stderr)
    print(f"{named} commands, {ran} of them run, {len(report.failures)} fail")
    return 1 if report.failures else 0


if __name__ == "__main__":
    sys.exit(main())
