# SPDX-License-Identifier: MIT
"""Documents name only commands of flexsc bench and flexsc study that exist."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterator

import pytest
from documents import FOLDERS, OLD, ROOT
from flexbench.command import check, parse
from flexbench.samples import BenchError
from flexstudy.report.__main__ import parse as parse_report
from test_flexbench_papers import COMMANDS

# Code in a paragraph, which may continue on the next line, or in a block.
SPAN = re.compile(r"`([^`]+)`")
FENCED = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)
BLOCK = re.compile(r"(?:^(?: {4}|\t).*\n)+", re.MULTILINE)
COMMAND = re.compile(r"(?:^|(?<=[\s/]))flexsc +(?:bench|study)\b.*")
# Values of words in capitals; others are any text.
EXAMPLES = {"BENCH": "all", "N": "1"}


def code_of(text: str) -> Iterator[str]:
    """The lines of code in a document."""
    for pattern in (FENCED, BLOCK):
        for found in pattern.findall(text):
            yield from found.replace("\\\n", " ").splitlines()
        text = pattern.sub("\n", text)
    for paragraph in re.split(r"\n\s*\n", text):
        yield from (" ".join(span.split()) for span in SPAN.findall(paragraph))


def commands_of(text: str) -> Iterator[str]:
    """The commands of bench and study; a synopsis with brackets isn't one."""
    for line in code_of(text):
        for command in COMMAND.findall(line):
            if "[" not in command:
                yield " ".join(shlex.split(command, comments=True))


def parsed(command: str) -> None:
    """Raises SystemExit or BenchError for a command that doesn't exist."""
    _, name, *words = command.split()
    words = [EXAMPLES.get(word, word) for word in words if word != "--help"]
    if words[:1] == ["report"] and name == "study":
        parse_report(words[1:])
    elif words[:1] != ["--raw"]:  # which the parser of flexsc itself reads
        check(COMMANDS[name], parse(COMMANDS[name], words))


def found() -> dict[str, list[str]]:
    """The commands of each document."""
    paths = [*ROOT.glob("*.md")]
    paths += [path for folder in FOLDERS for path in (ROOT / folder).rglob("*.md")]
    names = sorted(str(path.relative_to(ROOT)) for path in paths)
    every = {
        name: list(commands_of((ROOT / name).read_text(encoding="utf-8")))
        for name in names
        if name not in OLD
    }
    return {name: commands for name, commands in every.items() if commands}


FOUND = found()


@pytest.mark.parametrize("document", FOUND)
def test_each_command_of_a_document_exists(
    monkeypatch: pytest.MonkeyPatch, document: str
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0)  # which --network asks for
    for command in FOUND[document]:
        try:
            parsed(command)
        except (BenchError, SystemExit) as error:
            pytest.fail(f"{document}: {command}: {error}")


def test_documents_with_commands_are_read() -> None:
    for name, least in (
        ("docs/explanation/results.md", 5),
        ("docs/explanation/choosing-a-model.md", 3),
        ("study/docs/flexsc-study.1.md", 3),
        ("study/README.md", 3),
    ):
        assert len(FOUND[name]) >= least, name


def test_commands_are_found_in_all_kinds_of_code() -> None:
    text = """\
Text with `flexsc bench calls`, and `flexsc study nginx
plain --quick`; not flexsc bench nothing, nor `flexsc stat`.

    perf record flexsc bench reads   # a comment
    build/cmd/flexsc study cost \\
        --quick
    flexsc study [BENCH]

```sh
flexsc study memory
```
"""
    assert sorted(commands_of(text)) == [
        "flexsc bench calls",
        "flexsc bench reads",
        "flexsc study cost --quick",
        "flexsc study memory",
        "flexsc study nginx plain --quick",
    ]


@pytest.mark.parametrize(
    "command",
    [
        *("flexsc bench nginx", "flexsc study nginx ftp", "flexsc study --show"),
        *("flexsc study programs apache:prefork", "flexsc bench calls --cpus 2"),
        *("flexsc study report --figure a", "flexsc bench timers --cores 2"),
        *("flexsc study nginx --network wire", "flexsc study overload size=0"),
    ],
)
def test_a_command_that_does_not_exist_is_found(command: str) -> None:
    with pytest.raises((BenchError, SystemExit)):
        parsed(command)
