"""Whether a command names programs, subcommands, flags and files that there are. Nothing is run but
--help."""
import functools
import os
import pathlib
import re
import shlex
import subprocess

OF_ALL = {"help", "version", "quiet", "json", "operators"}  # flags that every program takes
OPERATORS = set("();<>|&")


def _words(command):
    """The words of a command, None where a shell would begin another one."""
    lexer = shlex.shlex(command.replace("\\\n", " "), posix=True, punctuation_chars=True)
    lexer.whitespace_split = True
    lexer.commenters = "#"
    return [None if set(word) <= OPERATORS else word for word in lexer]


class Facts:
    """What there is: of a source tree and a folder of its programs."""

    def __init__(self, tree, programs):
        self.tree, self.programs = tree, programs

    @functools.lru_cache(maxsize=None)
    def help_of(self, program):
        return subprocess.run([os.path.join(self.programs, program), "--help"], text=True,
                              capture_output=True, check=True).stdout

    def _unknown_to_program(self, program, words):
        said = self.help_of(program)
        subcommands = re.findall(rf"(?:{program}|\|) ([a-z]+) [A-Z[-]", said)
        if words and re.fullmatch(r"[a-z]+", words[0]) and words[0] not in subcommands:
            yield f"{program} has no subcommand {words[0]}"
        known = OF_ALL | set(re.findall(r"^  --(\w+):", said, re.MULTILINE))
        for word in words:
            flag = re.match(r"\[?--(no)?(\w+)", word)
            if flag and (flag[1] or "") + flag[2] not in known and flag[2] not in known:
                yield f"{program} has no flag --{(flag[1] or '') + flag[2]}"

    def _unknown_to_script(self, script, words):
        path = os.path.join(self.tree, script)
        if not os.path.exists(path):
            yield f"there is no {script}"
            return
        with open(path, encoding="utf-8") as file:
            text = file.read()
        for word in words:
            flag = re.match(r"--([\w-]+)", word)
            # What a script hands on is some program's.
            known = flag is None or flag[0] in text or f'"{flag[1]}"' in text or (
                '"$@"' in text and flag[1] in self.flags_of_programs)
            if not known:
                yield f"{script} has no flag {flag[0]}"

    def _unknown_to_benchmark(self, path):
        name = os.path.basename(path)
        with open(os.path.join(self.tree, "bench/CMakeLists.txt"), encoding="utf-8") as file:
            if not re.search(rf"\b{name}\b", file.read()):
                yield f"bench/ builds no {name}"

    def _unknown_to_tests(self, path):
        name = re.sub(r"^isomer_(\w+)_test$", r"\1", os.path.basename(path))
        if not os.path.isdir(os.path.join(self.tree, "tests", name)):
            yield f"there are no tests of {name}"

    @functools.cached_property
    def flags_of_programs(self):
        """Flags of any program, benchmark or script."""
        flags = set(OF_ALL)
        for program in os.listdir(self.programs):
            if program.startswith("isomer-"):
                flags.update(re.findall(r"^  --(\w+):", self.help_of(program), re.MULTILINE))
        for folder, form in (("bench", r"ABSL_FLAG\([^,]+, (\w+),"), ("bench", r"--(\w+)"),
                             ("scripts", r"--(\w+)"), ("models/export", r'"--(\w+)"'),
                             ("tests/documents", r'"--(\w+)"')):
            for path in sorted(pathlib.Path(self.tree, folder).rglob("*")):
                if path.suffix in (".cc", ".sh", ".py"):
                    flags.update(re.findall(form, path.read_text(encoding="utf-8")))
        return flags

    def unknown_flags(self, code):
        """The flags in a piece of code that nothing takes."""
        for no, flag in re.findall(r"(?<![\w-])--(no)?([\w-]+)", code):
            if flag not in self.flags_of_programs and no + flag not in self.flags_of_programs:
                yield f"nothing has a flag --{no}{flag}"

    def unknown(self, command):
        """What of the command there is not, a line each."""
        words = _words(command)
        for at, word in enumerate(words):
            if word is None:
                continue
            rest = words[at + 1:]
            rest = rest[:rest.index(None)] if None in rest else rest
            name = os.path.basename(word)
            if re.fullmatch(r"(build/release/bin/)?isomer-[a-z]+", word):
                if not os.path.exists(os.path.join(self.programs, name)):
                    yield f"there is no program {name}"
                else:
                    yield from self._unknown_to_program(name, rest)
            elif re.fullmatch(r"(scripts|bench|models)/[\w/]+\.(sh|py)", word):
                yield from self._unknown_to_script(word, rest)
            elif word.startswith("build/release/bench/"):
                yield from self._unknown_to_benchmark(word)
            elif word.startswith("build/release/tests/"):
                yield from self._unknown_to_tests(word)
