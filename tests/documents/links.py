"""What a page of Markdown leads to: links, headings behind `#`, and files of the tree that it names in
code."""
import os
import re

FILE = re.compile(r"`((?:pcg|rules|generator|verifier|optimizer|runtime|models|python|tests|bench|scripts"
                  r"|docs)/[\w./-]+\.(?:cc|h|proto|py|sh|md|txt|tsv|csv|json|textproto|onnx|rules))`")
PLACEHOLDER = re.compile(r"\b(NAME|CLASS)\b")


def _anchors(path):
    """Those of the headings of a page, as GitHub makes them."""
    with open(path, encoding="utf-8") as file:
        headings = re.findall(r"^#+ (.*)$", file.read(), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", re.sub(r"\]\([^)]*\)", "", heading).lower()).replace(" ", "-")
            for heading in headings}


def leading_nowhere(tree, name, text):
    """(line, what is named and not there) of the page `name` of the tree."""
    for number, line in enumerate(text.split("\n"), 1):
        for link, anchor in re.findall(r"\]\(([^)#\s]*)(?:#([^)\s]*))?\)", line):
            if re.match(r"[a-z]+:", link):
                continue
            path = os.path.normpath(os.path.join(tree, os.path.dirname(name), link)) if link \
                else os.path.join(tree, name)
            if not os.path.exists(path):
                yield number, f"there is no {link}"
            elif anchor and path.endswith(".md") and anchor not in _anchors(path):
                yield number, f"{link or name} has no heading #{anchor}"
        for path in FILE.findall(line):
            if not PLACEHOLDER.search(path) and not os.path.exists(os.path.join(tree, path)):
                yield number, f"there is no {path}"
