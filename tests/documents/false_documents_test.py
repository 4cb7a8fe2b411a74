#!/usr/bin/env python3
"""What commands_test.py has to say of documents that are false: in a tree of one page and one
program."""
import pathlib
import shutil
import stat
import subprocess
import sys
import tempfile
import unittest

HERE = pathlib.Path(__file__).resolve().parent
PROGRAM = """#!/bin/sh
case $1 in
--help) printf 'Usage: isomer-say words FILE\\n\\nFlags:\\n  --loud: as it says (false)\\n' ;;
words) echo one; echo two ;;
fail) echo "error: it fails" >&2; exit 2 ;;
page) echo changed >docs/page.md ;;
esac
"""
EXCEPTIONS = """NOT_RUN = SLOW = QUICKER = ANSWERS_NO = FLAGS_OF_OTHERS = ()
GIVEN = {}
"""


class FalseDocuments(unittest.TestCase):

    def setUp(self):
        self.tree = pathlib.Path(tempfile.mkdtemp(prefix="isomer documents."))
        self.addCleanup(shutil.rmtree, self.tree)
        for folder in ("docs", "rules", "tests", "bench", "scripts", "models/export", "build/b/bin"):
            (self.tree / folder).mkdir(parents=True)
        (self.tree / "bench/CMakeLists.txt").write_text("isomer_benchmark(there)\n")
        shutil.copytree(HERE, self.tree / "tests/documents")
        (self.tree / "tests/documents/exceptions.py").write_text(EXCEPTIONS)
        for page in self.tree.rglob("*.md"):
            page.unlink()
        program = self.tree / "build/b/bin/isomer-say"
        program.write_text(PROGRAM)
        program.chmod(program.stat().st_mode | stat.S_IXUSR)

    def said_of(self, page, code=1):
        (self.tree / "docs/page.md").write_text(page)
        found = subprocess.run([sys.executable, self.tree / "tests/documents/commands_test.py",
                                self.tree / "build/b"], text=True, capture_output=True, check=False)
        self.assertEqual(found.returncode, code, found.stdout + found.stderr)
        return found.stderr + found.stdout

    def test_what_is_true_passes(self):
        said = self.said_of("Do:\n\n    isomer-say words --loud\n\n    one\n    ..\n    two\n\nAnd `--loud`, "
                            "`isomer-say words F`.\n", code=0)
        self.assertIn("2 commands, 1 of them run, 0 fail", said)

    def test_a_command_that_fails(self):
        self.assertIn("docs/page.md:2: X=fail; isomer-say $X\n    ends with 2: error: it fails",
                      self.said_of("```sh\nX=fail; isomer-say $X\n```\n"))

    def test_output_that_moved(self):
        said = self.said_of("    isomer-say words\n\n    two\n    one\n")
        self.assertIn("no longer prints this line, or not there: one", said)

    def test_flags_subcommands_and_programs_that_there_are_not(self):
        for command, why in (("isomer-say words --quite", "has no flag --quite"),
                             ("isomer-say word", "has no subcommand word"),
                             ("isomer-shout", "there is no program isomer-shout"),
                             ("scripts/none.sh", "there is no scripts/none.sh"),
                             ("build/release/bench/none", "bench/ builds no none")):
            self.assertIn(why, self.said_of(f"    {command}\n"))
            self.assertIn(why, self.said_of(f"In text: `{command} --json=F`.\n"))
        self.assertIn("nothing has a flag --quite", self.said_of("In text: `--quite`.\n"))

    def test_a_page_that_its_command_writes_otherwise(self):
        self.assertIn("is not what its command writes", self.said_of("```sh\nX=page; isomer-say $X\n```\n"))

    def test_links_that_lead_nowhere(self):
        (self.tree / "docs/other.md").write_text("# One `two`: [three](page.md)\n")
        self.said_of("[a](other.md#one-two-three), [b](page.md) and `docs/page.md`\n", code=0)
        for page, why in (("[a](none.md)", "there is no none.md"),
                          ("[a](other.md#one)", "other.md has no heading #one"),
                          ("[a](#one)", "docs/page.md has no heading #one"),
                          ("`docs/none.md`", "there is no docs/none.md")):
            self.assertIn(why, self.said_of(page + "\n"))

    def test_an_exception_that_is_about_nothing(self):
        path = self.tree / "tests/documents/exceptions.py"
        path.write_text(EXCEPTIONS + "SLOW = ((r'^isomer-say words', 'slow'), (r'^x ', 'no'))\n")
        said = self.said_of("    isomer-say words\n")
        self.assertIn("exceptions.py: ^x \n    is about no command", said)
        self.assertIn("1 commands, 0 of them run, 1 fail", said)


if __name__ == "__main__":
    unittest.main()
