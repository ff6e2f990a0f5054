"""A report as one HTML page: no scripts, nothing loaded, everything from the server escaped."""

from __future__ import annotations

from html import escape
from typing import Final

import msgspec

from earnest.assay.model import HintVerdict, Report, ToolReport
from earnest.core.hints import HINTS
from earnest.core.visible import visible

_STYLE: Final = """
:root { color-scheme: light dark; --line: #8884; --dim: #777; --bad: #c62828; --warn: #b26a00; --good: #2e7d32; }
body { font: 15px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 72rem; padding: 0 1rem; }
h1 { font-size: 1.5rem; margin-bottom: 0; } h2 { font-size: 1.1rem; margin-top: 2rem; }
p.dim, .dim { color: var(--dim); } code { font: 13px ui-monospace, monospace; overflow-wrap: anywhere; }
table { border-collapse: collapse; width: 100%; }
th, td { text-align: left; padding: .35rem .6rem; border-bottom: 1px solid var(--line);
vertical-align: top; } th { font-weight: 600; } td.n { text-align: right; font-variant-numeric: tabular-nums; }
.v { white-space: nowrap; font-weight: 600; } .CONTRADICTED { color: var(--bad); } .SOFT { color: var(--warn); }
.SUPPORTED { color: var(--good); } .NOT-EXERCISED, .INCONCLUSIVE { color: var(--dim); font-weight: 400; }
.claim { color: var(--dim); font-size: 12px; }
details { margin: .5rem 0; border: 1px solid var(--line); border-radius: 6px; padding: .4rem .8rem; }
summary { cursor: pointer; } pre { overflow-x: auto; background: #8881; padding: .6rem; border-radius: 4px; font-size: 12px; }
.wide { overflow-x: auto; } ul { padding-left: 1.2rem; }
"""
_WORDS: Final = {
    "read_only": "reads only",
    "destructive": "destructive",
    "idempotent": "idempotent",
    "open_world": "open world",
}


def render(report: Report) -> str:
    """The page."""
    bad = sum(hint.verdict == "CONTRADICTED" for tool in report.tools for hint in tool.hints.values())
    title = f"Assay of {_text(report.server)}"
    verdict = f"{bad} claims contradicted" if bad != 1 else "1 claim contradicted"
    parts = [
        "<!doctype html><html lang=en><head><meta charset=utf-8>",
        "<meta name=viewport content='width=device-width, initial-scale=1'>",
        "<meta http-equiv=Content-Security-Policy content=\"default-src 'none'; style-src 'unsafe-inline'\">",
        f"<title>{title}</title><style>{_STYLE}</style></head><body>",
        f"<h1>{title} {_text(report.version)}</h1>",
        f"<p class=dim>{len(report.tools)} tools, {sum(t.calls for t in report.tools)} calls in {report.sessions} sessions, "
        f"tier {_text(report.tier)}, {report.seconds:.0f} s, {report.cpu_seconds:.1f} s of processor time</p>",
        f"<p class='v {'CONTRADICTED' if bad else 'SUPPORTED'}'>{verdict if bad else 'No claim contradicted'}</p>",
        f"<p><code>{_text(' '.join(report.command))}</code></p>" if report.command else "",
        _findings(report),
        _table(report),
        *(_tool(tool) for tool in report.tools if _telling(tool)),
        "<p class=dim>SUPPORTED means that calls which could have shown otherwise did not; it is no proof. "
        "INCONCLUSIVE means that this machine could not see.</p></body></html>\n",
    ]
    return "\n".join(parts)


def _text(value: str) -> str:
    return escape(visible(value))


def _findings(report: Report) -> str:
    if not report.server_findings:
        return ""
    items = "".join(f"<li><b>{_text(f.kind)}</b>: {_text(f.what)}</li>" for f in report.server_findings)
    return f"<h2>The server as a whole</h2><ul>{items}</ul>"


def _table(report: Report) -> str:
    head = "".join(f"<th>{_WORDS[hint]}</th>" for hint in HINTS)
    rows = []
    for tool in report.tools:
        cells = "".join(f"<td>{_cell(tool.hints[hint])}</td>" for hint in HINTS)
        counts = f"<td class=n>{tool.calls}</td><td class=n>{tool.effective_calls}</td>"
        rows.append(f"<tr><td><code>{_text(tool.name)}</code></td>{counts}{cells}</tr>")
    return (
        "<h2>Tools</h2><div class=wide><table><thead><tr><th>tool</th><th>calls</th><th>with effect</th>"
        f"{head}</tr></thead><tbody>{''.join(rows)}</tbody></table></div>"
    )


def _cell(found: HintVerdict) -> str:
    claimed = "claims nothing" if found.claimed is None else f"claims {str(found.claimed).lower()}"
    word = f"<span class='v {found.verdict}' title='{_text(found.reason)}'>{found.verdict}</span>"
    return f"{word}<br><span class=claim>{claimed}</span>"


def _telling(tool: ToolReport) -> bool:
    return any(hint.verdict in ("CONTRADICTED", "SOFT", "INCONCLUSIVE") for hint in tool.hints.values()) or not tool.answered


def _tool(tool: ToolReport) -> str:
    parts = []
    for hint in HINTS:
        found = tool.hints[hint]
        items = []
        for one in found.evidence:
            seen = f" (seen in {one.runs} of {one.of} clean sessions)" if one.steps else ""
            steps = "\n".join(f"{step.tool} {msgspec.json.encode(dict(step.arguments)).decode()}" for step in one.steps)
            replay = f"<br>replay: <code>{_text(one.replay)}</code>" if one.replay else ""
            body = f"<pre>{_text(steps)}</pre>" if steps else ""
            items.append(f"<li>{_text(one.what)}, {_when(one.when)}{seen}{replay}{body}</li>")
        evidence = f"<ul>{''.join(items)}</ul>" if items else ""
        parts.append(
            f"<p><b>{_WORDS[hint]}</b>: <span class='v {found.verdict}'>{found.verdict}</span>. "
            f"{_text(found.reason)}</p>{evidence}"
        )
    suggested = ", ".join(f"{name}: {str(value).lower()}" for name, value in tool.suggested.items())
    more = f"<p class=dim>What was seen speaks for <code>{_text(suggested)}</code></p>" if suggested else ""
    opened = " open" if any(hint.verdict == "CONTRADICTED" for hint in tool.hints.values()) else ""
    return f"<details{opened}><summary><code>{_text(tool.name)}</code></summary>{''.join(parts)}{more}</details>"


def _when(word: str) -> str:
    return {"call": "with the call", "later": "after the call had been answered", "exit": "when the server ended"}.get(
        word, word
    )
