"""The commands that a page of Markdown has: in blocks of shell, indented or fenced, and in code
within text. A block is one of commands if it is fenced as `sh` or its first line is a command."""
import dataclasses
import re

# What a command of a document may begin with, besides NAME=VALUE, `(` and a path of the tree.
STARTERS = {"bash", "cd", "chromium", "cmake", "cp", "ctest", "curl", "docker", "dot", "echo",
            "export", "for", "git", "mkdir", "mpirun", "pip", "protoc", "python", "python3",
            "source", "srun", "tar", "time", "torchrun", "venv/bin/pip", "/usr/bin/python3"}
PATH = re.compile(r"(?:scripts|bench|build|models|tests)/[\w./-]+$")
TABLE = re.compile(r"\|(.+)\|\s*$")


@dataclasses.dataclass
class Command:
    line: int
    text: str  # as a shell takes it, of one line or several
    runs: bool  # false: it is named in running text, where it need not be complete
    output: list = dataclasses.field(default_factory=list)  # lines that the page says it prints


def is_command(line):
    if not line.strip() or line[0].isspace():
        return False
    first = line.split()[0]
    return bool(first.startswith("isomer-") or first in STARTERS or PATH.match(first)
                or re.match(r"[A-Z_]+=\S", first) or first.startswith("(cd"))


def _blocks(lines):
    """(language or None if indented, number of the first line, lines without their indentation)"""
    at = 0
    while at < len(lines):
        fence = re.match(r"( *)```(\w*)\s*$", lines[at])
        start = at + 1
        if fence:
            end = start
            while end < len(lines) and lines[end].strip() != "```":
                end += 1
            cut = len(fence[1])
            yield fence[2], start + 1, [line[cut:] for line in lines[start:end]]
            at = end + 1
            continue
        after_text = at > 0 and lines[at - 1].strip()
        indent = len(lines[at]) - len(lines[at].lstrip(" "))
        if lines[at].strip() and indent >= 4 and not after_text:
            end = at
            while end < len(lines) and (not lines[end].strip() or lines[end].startswith(" " * indent)):
                end += 1
            yield None, start, [line[indent:] for line in lines[at:end]]
            at = end
            continue
        at += 1


def _of_block(number, lines, all_are):
    commands = []
    at = 0
    while at < len(lines):
        line = lines[at]
        if line.lstrip().startswith("#") or not line.strip():
            pass
        elif all_are or is_command(line):
            text = line
            first = at
            while text.endswith("\\") and at + 1 < len(lines):
                at += 1
                text += "\n" + lines[at]
            commands.append(Command(number + first, text, True))
        elif commands:
            commands[-1].output.append(line.strip())
        at += 1
    return commands


def commands_of(markdown):
    lines = markdown.split("\n")
    commands = []
    for language, number, block in _blocks(lines):
        if language == "sh" or (language is None and is_command(block[0])):
            commands += _of_block(number, block, language == "sh")
    column = None  # of a table, the one that holds commands
    cells = set()  # (line, code) in it
    for number, line in enumerate(lines, 1):
        row = TABLE.match(line)
        if row is None:
            column = None
            continue
        of_row = re.split(r"(?<!\\)\|", row[1])
        if "command" in [cell.strip() for cell in of_row]:
            column = [cell.strip() for cell in of_row].index("command")
        elif column is not None and column < len(of_row):
            cells.update((number, code) for code in re.findall(r"`([^`]+)`", of_row[column]))
    for number, code in code_in_text(markdown):
        if is_command(code):
            commands.append(Command(number, re.sub(r"\s+", " ", code), (number, code) in cells))
    return sorted(commands, key=lambda command: command.line)


def code_in_text(markdown):
    """(line, code) of what is in backticks outside of blocks."""
    lines = markdown.split("\n")
    for _, number, block in _blocks(lines):
        for at in range(number - 1, number - 1 + len(block)):
            lines[at] = ""
    text = "\n".join(lines)
    for code in re.finditer(r"(?<!`)`([^`]+)`(?!`)", text):
        yield text.count("\n", 0, code.start()) + 1, code[1]


def blocks_of(markdown, language):
    """(number of the first line, text) of the blocks that are fenced as of the language."""
    return [(number, "\n".join(block)) for found, number, block in _blocks(markdown.split("\n"))
            if found == language]
