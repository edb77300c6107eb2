# SPDX-License-Identifier: MIT
"""The report as one HTML page, without scripts or external references."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from html import escape

from flexbench import machine, quiet
from flexbench.compare import Interval

from .figure import LOST, Row, State, Verdict
from .runs import Runs, Source
from .shown import Shown

STYLE = """\
:root { color-scheme: light dark; --line: #8884; --good: #1a7f37; --bad: #c4321c; }
body { font: 16px/1.45 sans-serif; margin: 2rem auto; max-width: 72rem;
  padding: 0 1rem; }
table { border-collapse: collapse; margin: .8rem 0; }
th, td { border-bottom: 1px solid var(--line); padding: .25rem .6rem;
  text-align: left; vertical-align: top; }
pre { overflow-x: auto; }
figure { margin: 1rem 0; overflow-x: auto; }
svg { height: auto; max-width: 100%; }
svg * { stroke-linecap: butt; stroke-linejoin: round; }
svg text { fill: currentColor; }
section { border-top: 2px solid var(--line); margin-top: 2rem; }
.good { color: var(--good); } .bad { color: var(--bad); }
@media (prefers-color-scheme: dark) { :root { --good: #4ac26b; --bad: #ff8a70; } }
@media print { body { margin: 0; max-width: none; } section { break-inside: avoid; }
  a { color: inherit; text-decoration: none; } }
"""
TITLE = "FlexSC and SEND: the papers' figures, and ours"
LEGEND = """\
Ratios are gains: above 1, FlexSC or SEND is better. If a paper gives a time or a latency,
its inverse is compared. The interval of the median follows each ratio. The verdicts:
<b>reached</b>: the whole interval is at or above the paper's number; <b>in part</b>: the
interval is above 1; <b>no difference</b>: the interval includes 1, or the paper's number,
which is a loss; <b>the other way</b>: the interval is below 1; <b>below the paper</b>: our
loss is larger than the paper's; <b>ahead</b>: the interval is above 1, and the paper has no
number; <b>too few rounds</b>: fewer than three. A paper's curve is known only at points that
a sentence of the paper states. In drawings a diamond marks the paper's gain. A hollow point
was limited by its clients. A paper's "up to" is compared with our best point that isn't
hollow."""
GOOD = (Verdict.REACHED, Verdict.IN_PART, Verdict.AHEAD)


def row_of(cells: Iterable[str], tag: str = "td") -> str:
    return "<tr>" + "".join(f"<{tag}>{cell}</{tag}>" for cell in cells) + "</tr>\n"


def table_of(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table. Its cells must be HTML."""
    body = "".join(row_of(row) for row in rows)
    return (
        f"<table><thead>\n{row_of(head, 'th')}</thead><tbody>\n{body}</tbody></table>\n"
    )


def number(value: float) -> str:
    return f"{value:.2f}" if value >= 0.1 else f"{value:.2g}"


def gain(ratio: Interval | None) -> str:
    """A ratio's median, and the ends of its interval."""
    if ratio is None:
        return ""
    return f"{number(ratio.median)} ({number(ratio.low)}-{number(ratio.high)})"


def verdict(row: Row) -> str:
    if row.verdict is None:
        return escape(row.reason)
    kind = "bad" if row.verdict in LOST else "good" if row.verdict in GOOD else ""
    text = escape(row.verdict.value)
    return f'<span class="{kind}">{text}</span>' if kind else text


def tally(shown: Shown) -> str:
    """The figure's verdicts, each with the number of its rows."""
    counts = Counter(row.verdict for row in shown.rows if row.verdict)
    return ", ".join(f"{v.value} {counts[v]}" for v in Verdict if counts[v])


def rough(shown: Shown) -> str:
    """A remark if other processes disturbed a round of the figure; else empty."""
    if shown.disturbed <= quiet.LIMIT_PERCENT:
        return ""
    return (
        f"rough: other processes used up to {shown.disturbed:.0f} "
        "% of the measured cores"
    )


def first(shown: Shown) -> str:
    """The first row that has a number of ours."""
    for row in shown.rows:
        if row.ratio or row.here:
            return f"{row.where}: {gain(row.ratio) or row.here}"
    return ""


def overview(all_shown: Sequence[Shown]) -> str:
    rows = []
    for shown in all_shown:
        item = shown.item
        text = "; ".join(t for t in (tally(shown) or shown.why, rough(shown)) if t)
        rows.append(
            [
                f'<a href="#{escape(item.id)}">{escape(item.id)}</a>',
                escape(f"{item.paper}, {item.figure}: {item.title}"),
                escape(item.claim),
                escape(first(shown)),
                escape(f"{shown.state.value}: {text}" if text else shown.state.value),
            ]
        )
    return table_of(["id", "figure", "the paper", "ours, first row", "verdicts"], rows)


def losses(all_shown: Sequence[Shown]) -> str:
    # A row may appear beside several numbers of the paper; list it once.
    lost: dict[tuple[str, str], Row] = {}
    for shown in all_shown:
        for row in shown.lost:
            lost.setdefault((shown.item.id, row.where), row)
    rows = [
        [
            f'<a href="#{escape(name)}">{escape(name)}</a>',
            escape(where),
            escape(row.beside),
            escape(gain(row.ratio)),
            verdict(row),
        ]
        for (name, where), row in lost.items()
    ]
    if not rows:
        return "<p>No ratio of these measurements is below 1.</p>\n"
    return table_of(["id", "where", "the paper", "gain", "verdict"], rows)


# A file of measurements.


def described(source: Source) -> str:
    try:
        return machine.describe(source.machine)
    except (AttributeError, KeyError, TypeError, ValueError):
        return "another version described its machine"


def command(source: Source) -> str:
    """The command as typed, without the --flexsc that flexsc adds."""
    words = [str(word) for word in source.run.command]
    if "--flexsc" in words:
        at = words.index("--flexsc")
        del words[at : at + 2]
    # In an older version's file the subcommand is missing.
    before = [] if words[:1] in (["bench"], ["study"]) else ["bench"]
    return " ".join(["flexsc", *before, *words])


def machines(runs: Runs) -> str:
    if not runs.sources:
        return "<p>No file of measurements was given.</p>\n"
    parts = []
    for source in runs.sources:
        lines = [
            command(source),
            str(source.machine.get("time", "")),
            described(source),
            *map(str, source.run.notes),
        ]
        text = escape("\n".join(lines))
        parts.append(f"<h3>{escape(source.name)}</h3>\n<pre>{text}</pre>\n")
    return "".join(parts)


def origin(shown: Shown, runs: Runs) -> str:
    lines = []
    for source, bench in shown.sources:
        m = source.machine
        cores = m.get("cores", {})
        revision = f"revision {m.get('revision') or 'unknown'}"
        where = f"{machine.named(cores)} of {m.get('online')}, {m.get('cpu')}"
        kernel = f"Linux {m.get('kernel')}"
        share = (
            f"other processes used up to {source.disturbed(bench):.1f} "
            "% of the measured cores"
        )
        facts = [source.name, str(m.get("time")), revision, kernel, where, share]
        mark = "" if source.same(runs.sources[0]) else " (another machine or revision)"
        lines.append(escape("; ".join(facts) + mark))
    return f"<p>From {'<br>'.join(dict.fromkeys(lines))}</p>\n" if lines else ""


# A figure.


def beside(rows: Sequence[Row]) -> str:
    if not rows:
        return ""
    cells = [
        [
            escape(row.where),
            escape(row.beside),
            "" if row.gain is None else number(row.gain),
            escape(row.here),
            escape(gain(row.ratio)),
            verdict(row),
        ]
        for row in rows
    ]
    head = ["where", "the paper", "as a gain", "ours", "gain", "verdict"]
    return table_of(head, cells)


def text_of(shown: Shown) -> str:
    """The paper's numbers, as written in the file in papers/."""
    data = shown.data
    if not data.cells:
        return ""
    head = [escape(name.replace("_", " ")) for name in data.head]
    cells = [[escape(cell) for cell in row] for row in data.cells]
    return "<h3>The numbers in the paper</h3>\n" + table_of(head, cells)


def commands(shown: Shown) -> str:
    benches = [bench for bench in shown.figure.benches if bench.words]
    words = dict.fromkeys(bench.command for bench in benches)
    if words:
        text = " or ".join(f"<code>{escape(word)}</code>" for word in words)
        return f"<p>Measured by {text}</p>\n"
    return ""


def section(shown: Shown, runs: Runs) -> str:
    item = shown.item
    title = escape(f"{item.paper}, {item.figure}: {item.title}")
    said = (shown.state.value, shown.why, rough(shown))
    state = escape(": ".join(text for text in said if text))
    parts = [
        f'<section id="{escape(item.id)}">\n<h2>{title}</h2>\n',
        f"<p>{escape(item.claim)}</p>\n" if item.claim else "",
        f"<p><b>{state}</b></p>\n",
        f"<figure>{shown.svg}</figure>\n" if shown.svg else "",
        beside(shown.rows),
    ]
    if shown.figure.differs:
        text = escape(shown.figure.differs)
        parts.append(f"<p><b>What is different here.</b> {text}</p>\n")
    parts += [commands(shown), origin(shown, runs), text_of(shown), "</section>\n"]
    return "".join(parts)


def page(
    all_shown: Sequence[Shown], runs: Runs, check: str, notes: Sequence[str]
) -> str:
    """The report. check: flexsc check's output, or empty. notes: remarks at the top."""
    counts = Counter(shown.state for shown in all_shown)
    summary = ", ".join(
        f"{state.value} {counts[state]}" for state in State if counts[state]
    )
    said = "".join(f"<p><b>{escape(note)}</b></p>\n" for note in notes)
    checked = (
        f"<pre>{escape(check)}</pre>\n" if check else "<p>It wasn't recorded.</p>\n"
    )
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(TITLE)}</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n"
        f"<h1>{escape(TITLE)}</h1>\n{said}<p>{LEGEND}</p>\n"
        f"<h2>All figures: {escape(summary)}</h2>\n{overview(all_shown)}"
        f"<h2>Where we lose</h2>\n{losses(all_shown)}"
        f"<h2>The machine, and the files</h2>\n{machines(runs)}"
        f"<h2>flexsc check</h2>\n{checked}"
        + "".join(section(shown, runs) for shown in all_shown)
        + "</body>\n</html>\n"
    )
