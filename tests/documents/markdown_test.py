#!/usr/bin/env python3
"""Commands are found in Markdown, and what is none is not."""
import unittest

from markdown import commands_of


def found(markdown):
    return [(command.line, command.text, command.runs) for command in commands_of(markdown)]


class Commands(unittest.TestCase):

    def test_an_indented_block_with_a_comment_and_a_line_that_goes_on(self):
        self.assertEqual(found("Text:\n\n    isomer-run a.plan    # why\n    isomer-optimize m \\\n"
                               "      --out=b\n\nMore.\n"),
                         [(3, "isomer-run a.plan    # why", True),
                          (4, "isomer-optimize m \\\n  --out=b", True)])

    def test_a_fence_of_shell_has_commands_alone(self):
        self.assertEqual(found("```sh\n# a comment\nuname -a\n\nls | wc\n```\n"),
                         [(3, "uname -a", True), (5, "ls | wc", True)])

    def test_other_fences_and_drawings_have_none(self):
        self.assertEqual(found("```python\nisomer-run x\n```\n\n    pcg <- rules\n    isomer-run x\n"), [])

    def test_what_follows_a_command_is_what_it_prints(self):
        command, = commands_of("    isomer-run a.plan\n\n    first: 1\n      second\n")
        self.assertEqual(command.output, ["first: 1", "second"])

    def test_a_block_in_a_list(self):
        self.assertEqual(found("- *Many*: the same.\n\n      torchrun a \\\n        b\n\n- more\n"),
                         [(3, "torchrun a \\\n  b", True)])

    def test_lines_of_an_item_that_go_on_are_no_block(self):
        self.assertEqual(found("- an item\n    isomer-run is a word of it\n"), [])

    def test_a_column_of_commands_runs_and_text_does_not(self):
        self.assertEqual(found("| what | command |\n|---|---|\n| `isomer-run a` | `isomer-run b`, then `c` |\n\n"
                               "Say `isomer-run\nPLAN --check`.\n"),
                         [(3, "isomer-run a", False), (3, "isomer-run b", True),
                          (5, "isomer-run PLAN --check", False)])

    def test_a_fence_that_never_ends(self):
        self.assertEqual(found("```sh\nuname"), [(2, "uname", True)])


if __name__ == "__main__":
    unittest.main()
