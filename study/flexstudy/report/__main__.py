# SPDX-License-Identifier: MIT
"""The command line of flexsc study report."""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from flexbench.command import end_by_signals
from flexbench.samples import BenchError

from ..papers import Item
from . import draw, figures, matplot, measure, page, record
from .figure import Figure, State
from .runs import Runs, load
from .shown import Shown, drawn, show

RAW, FIGURES = "raw", "figures"


def parse(argv: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="flexsc study report",
        description="Put the papers' figures beside what was measured here, on one "
        "HTML page; flexsc-study(1) explains it.",
    )
    parser.add_argument(
        "--measure",
        action="store_true",
        help="measure what is missing in the files: takes hours",
    )
    parser.add_argument(
        "--quick", action="store_true", help="measure with fewer rounds and sizes"
    )
    parser.add_argument(
        "--only", default="", metavar="ID,...", help="only these figures"
    )
    parser.add_argument(
        "--from",
        dest="files",
        action="append",
        default=[],
        type=Path,
        metavar="FILE",
        help="a file of flexsc bench --out; may be repeated",
    )
    parser.add_argument(
        "--out",
        type=Path,
        default=Path("flexsc-report"),
        metavar="DIR",
        help="folder for the report (flexsc-report)",
    )
    parser.add_argument("--flexsc", default="flexsc", help=argparse.SUPPRESS)
    return parser.parse_args(argv)


def folders(out: Path) -> None:
    try:
        for name in (RAW, FIGURES):
            (out / name).mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise BenchError(f"{out / name}: {error.strerror}") from error


def draw_all(
    all_shown: list[Shown], runs: Runs, folder: Path
) -> tuple[list[Shown], str]:
    """The figures with their drawings; or the figures without drawings, and a text that
    explains why.
    """
    try:
        matplot.load(draw.WANTED)
    except BenchError as error:
        return all_shown, str(error)
    return [drawn(shown, runs, folder) for shown in all_shown], ""


def text_of(path: Path) -> str:
    return path.read_text(encoding="utf-8") if path.exists() else ""


def write(path: Path, text: str) -> None:
    """Write a file; on failure the earlier file is unchanged."""
    part = path.with_suffix(".part")
    try:
        part.write_text(text, encoding="utf-8")
        part.replace(path)
    except OSError as error:
        raise BenchError(f"{path}: {error.strerror}") from error
    finally:
        part.unlink(missing_ok=True)


def collect(args: argparse.Namespace, chosen: Sequence[tuple[Item, Figure]]) -> Runs:
    raw = args.out / RAW
    runs = Runs(load([*args.files, *measure.kept(raw)]))
    if args.measure:
        wanted = [figure for _, figure in chosen]
        measure.check(args.flexsc, raw)
        measure.measure(args.flexsc, wanted, runs, raw, args.quick)
        # Load all files again, in the order that the next report will use.
        runs.sources = load([*args.files, *measure.kept(raw)])
    return runs


def report(args: argparse.Namespace) -> None:
    chosen = figures.chosen([name for name in args.only.split(",") if name])
    if args.quick and not args.measure:
        raise BenchError("--quick needs --measure")
    folders(args.out)
    runs = collect(args, chosen)
    all_shown = [show(item, figure, runs) for item, figure in chosen]
    all_shown, note = draw_all(all_shown, runs, args.out / FIGURES)
    notes = [note] if note else []
    check = text_of(args.out / RAW / measure.CHECK)
    html = args.out / "report.html"
    write(html, page.page(all_shown, runs, check, notes))
    write(args.out / "report.json", record.record(all_shown, runs))
    counts = Counter(shown.state for shown in all_shown)
    for text in notes:
        print(text)
    print(", ".join(f"{s.value} {counts[s]}" for s in State if counts[s]))
    print(f"report: {html}")


def main(argv: list[str]) -> int:
    try:
        report(parse(argv))
    except BenchError as error:
        print(f"flexsc: study: report: {error}", file=sys.stderr)
        return 1
    except OSError as error:
        print(
            f"flexsc: study: report: {error.filename}: {error.strerror}",
            file=sys.stderr,
        )
        return 1
    return 0


if __name__ == "__main__":
    end_by_signals()
    sys.exit(main(sys.argv[1:]))
