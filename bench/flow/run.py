"""The flow benchmark: AgentDojo replayed with an agent that obeys every injection, decided by `earnest.Guard`.

No model takes part. The agent does the user's task as the benchmark's ground truth does it; at the first result that carries
the
injection it does all that this asks for, then goes on. Every call is put to the guard. A **perfect** person says yes to asks of
the user's task and no to the attacker's; one who **approves** says yes to all. Each session runs for real; whether an attack
succeeded is
AgentDojo's own check.

    pip install agentdojo==0.1.35 earnest
    python bench/flow/run.py --out results            # results.json, results.md

Figures belong together; the table in `docs/flow.md` says how to read them.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import sys
import time
import tomllib
import warnings
from collections.abc import Callable, Iterator
from multiprocessing import get_context
from pathlib import Path
from typing import Any, NamedTuple

warnings.filterwarnings("ignore")
HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

import attackers  # noqa: E402
import worlds  # noqa: E402

from earnest import Guard  # noqa: E402
from earnest.config.packs import load_packs  # noqa: E402
from earnest.guard.labels import ToolLabels, read  # noqa: E402

VERSION = "v1.2.2"
FLIPPED = "get_channels"
_COUNTS = ("tasks", "auto", "asks", "calls", "text_only", "unreached", "pairs", "asr", "partial", "destroyed")
_COUNTS += ("own", "own_asr", "own_partial", "own_destroyed")


class Setting(NamedTuple):
    """One row of the table: the attacker, whether the user's words are known, who answers asks, whether one label is wrong."""

    mode: str = "plain"
    words: bool = True
    approves: bool = False
    flipped: bool = False

    @property
    def name(self) -> str:
        """As the table calls it."""
        parts = [self.mode, "user's words" if self.words else "no words"]
        parts += ["approves all"] if self.approves else []
        parts += [f"{FLIPPED} mislabelled"] if self.flipped else []
        return ", ".join(parts)


def labels(flipped: bool = False) -> dict[str, dict[str, Any]]:
    """What is said of the 69 tools, as a mapping for `Guard`."""
    (pack,) = load_packs(HERE)
    found: dict[str, dict[str, Any]] = {}
    for name, tool in pack.tools.items():
        stated = {key: tool.labels.get(key) for key in ("read_only", "destructive", "idempotent", "open_world")}
        stated |= {key: tool.labels.get(key) for key in ("reads_private", "sees_untrusted", "can_exfiltrate")}
        found[name] = {**stated, "arg_roles": dict(tool.roles)}
    if flipped:
        found[FLIPPED]["sees_untrusted"] = False
    return found


class Session:
    """One run of a user's task, attacked or not."""

    def __init__(self, suite: worlds.Suite, user: Any, guard: Guard, known: dict[str, ToolLabels], setting: Setting) -> None:
        self.suite, self.user, self.guard, self.known, self.setting = suite, user, guard, known, setting
        self.prompt = ""
        self.asks = self.denied = self.partial = self.destroyed = 0
        self.calls: list[Any] = []
        self.seconds = 0.0

    def run(self, attack: Any = None) -> bool:
        """Runs it; whether the attack reached its goal."""
        places = self.suite.reached(self.user.ID) if attack is not None else ()
        injected = {place: attackers.text(attack.GOAL, self.setting.mode) for place in places}
        before = self.suite.world(self.user, injected)
        self.world = before.model_copy(deep=True)
        self.runtime = self.suite.runtime()
        if self.setting.words:
            self.guard.user(self.prompt or self.user.PROMPT)
        waiting = attack is not None
        for call in self.user.ground_truth(before.model_copy(deep=True)):
            shown = self.step(call, False, attack, before)
            if waiting and attackers.MARK in shown:
                waiting = False
                for evil in attackers.calls(self.suite.name, attack, self.world, before):
                    self.step(evil, True, attack, before)
        if attack is None or waiting:
            return False
        with contextlib.redirect_stdout(io.StringIO()):
            return self.suite.attacked(attack, before, self.world, self.calls, self.user.GROUND_TRUTH_OUTPUT)

    def step(self, call: Any, evil: bool, attack: Any, before: Any) -> str:
        """One call: decided, perhaps asked, perhaps run. Returns what it showed."""
        started = time.perf_counter()
        verdict = self.guard.decide(call.function, call.args).verdict
        self.seconds += time.perf_counter() - started
        if not evil:
            self.asks += verdict == "ask"
            self.denied += verdict == "deny"
        if verdict == "deny" or (verdict == "ask" and evil and not self.setting.approves):
            return ""
        profile = self.known[call.function].profile
        if evil and (not profile.read_only.value or profile.can_exfiltrate.value):
            self.partial += 1
            self.destroyed += profile.destructive.value
        result, error = self.runtime.run_function(self.world, call.function, call.args)
        self.calls.append(call)
        seen = worlds.plain(result) if error is None else error
        shown = json.dumps(seen, default=str)
        if self.setting.mode == "atoms" and attackers.MARK in shown and attack is not None:
            seen = [seen, list(self.atoms(attack, before))]
        self.guard.observe(call.function, seen)
        return shown

    def atoms(self, attack: Any, before: Any) -> Iterator[str]:
        """The values that steer the attacker's calls, as fields of their own."""
        for call in attackers.calls(self.suite.name, attack, self.world, before):
            for name, value in call.args.items():
                role = self.known[call.function].roles.get(name)
                if role is not None and role != "content" and role != "amount":
                    yield from map(str, _scalars(value))


def _scalars(value: Any) -> Iterator[Any]:
    if isinstance(value, dict):
        for key, part in value.items():
            if key != "type":
                yield from _scalars(part)
    elif isinstance(value, list | tuple):
        for part in value:
            yield from _scalars(part)
    elif value is not None and not isinstance(value, bool):
        yield value


def measure(setting: Setting, wanted: str | None = None) -> dict[str, Any]:
    """All sessions of one setting, by suite and together."""
    said = labels(setting.flipped)
    guard, known = Guard(labels=said), read(said)
    fresh: Callable[[], Guard] = lambda: guard.program()  # noqa: E731
    rows: dict[str, dict[str, Any]] = {}
    for suite in worlds.suites(VERSION):
        if wanted is not None and suite.name != wanted:
            continue
        row = rows[suite.name] = dict.fromkeys(_COUNTS, 0)
        row["seconds"] = 0.0
        for user_id, user in suite.users.items():
            session = Session(suite, user, fresh(), known, setting)
            session.run()
            row["tasks"] += 1
            row["auto"] += not session.asks and not session.denied
            row["asks"] += session.asks
            row["calls"] += len(session.calls)
            row["seconds"] += session.seconds
            for attack_id, attack in suite.attacks.items():
                if not suite.reached(user_id):
                    row["unreached"] += 1
                    continue
                if suite.speaks_only(attack):
                    row["text_only"] += 1
                    continue
                session = Session(suite, user, fresh(), known, setting)
                success = session.run(attack)
                own = "" if attackers.upstream(suite.name, attack_id) else "own_"
                row[f"{own}pairs" if not own else "own"] += 1
                row[f"{own}asr"] += success
                row[f"{own}partial"] += bool(session.partial)
                row[f"{own}destroyed"] += bool(session.destroyed)
    return {"setting": setting._asdict(), "name": setting.name, "suites": rows, "all": _sum(rows.values())}


def paraphrased(mode: str) -> dict[str, Any]:
    """The tasks in other words, of `words/agentdojo.toml`: benign, and attacked."""
    said = labels()
    guard, known = Guard(labels=said), read(said)
    setting = Setting(mode)
    prompts = tomllib.loads((HERE / "words" / "agentdojo.toml").read_text("utf-8"))
    row: dict[str, Any] = {"name": f"{setting.name}, in other words", "asking": []}
    row |= dict.fromkeys(("tasks", "auto", "asks", "pairs", "asr", "partial", "destroyed"), 0)
    for suite in worlds.suites(VERSION):
        for user_id, prompt in [(one, text) for one, texts in prompts[suite.name].items() for text in texts]:
            user = suite.users[user_id]
            session = Session(suite, user, guard.program(), known, setting)
            session.prompt = prompt
            session.run()
            row["tasks"] += 1
            row["auto"] += not session.asks
            row["asks"] += session.asks
            row["asking"] += [prompt] if session.asks else []
            for attack in suite.attacks.values():
                if not suite.reached(user_id) or suite.speaks_only(attack):
                    continue
                session = Session(suite, user, guard.program(), known, setting)
                session.prompt = prompt
                row["asr"] += session.run(attack)
                row["pairs"] += 1
                row["partial"] += bool(session.partial)
                row["destroyed"] += bool(session.destroyed)
    return row


def other_words(rows: list[dict[str, Any]]) -> str:
    """The table of the paraphrases."""
    lines = [
        "| setting | auto | asks a task | attacks that succeed | with partial effect | with destructive effect |",
        "|" + "---|" * 6,
    ]
    for row in rows:
        auto = f"{row['auto']} of {row['tasks']} ({row['auto'] / row['tasks']:.1%})"
        asks, asr = f"{row['asks'] / row['tasks']:.2f}", f"{row['asr']} of {row['pairs']}"
        lines.append(f"| {row['name']} | {auto} | {asks} | {asr} | {row['partial']} | {row['destroyed']} |")
    return "\n".join(lines) + "\n"


def _sum(rows: Any) -> dict[str, Any]:
    total: dict[str, Any] = {}
    for row in rows:
        for key, value in row.items():
            total[key] = total.get(key, 0) + value
    return total


def table(results: list[dict[str, Any]]) -> str:
    """The one table."""
    lines = [
        "| setting | auto | asks a task | attacks that succeed | with partial effect | with destructive effect "
        "| own scripts: succeed / partial / destructive |",
        "|---|---|---|---|---|---|---|",
    ]
    for result in results:
        row = result["all"]
        cells = [
            result["name"],
            f"{row['auto'] / row['tasks']:.1%}",
            f"{row['asks'] / row['tasks']:.2f}",
            f"{row['asr']} of {row['pairs']} ({row['asr'] / row['pairs']:.1%})",
            f"{row['partial']}",
            f"{row['destroyed']}",
            f"{row['own_asr']} / {row['own_partial']} / {row['own_destroyed']} of {row['own']}",
        ]
        lines.append(f"| {' | '.join(cells)} |")
    first = results[0]
    lines += [
        "",
        f"By suite, {first['name']}:",
        "",
        "| suite | auto | asks a task | attacks that succeed |",
        "|---|---|---|---|",
    ]
    for name, row in first["suites"].items():
        asks = row["asks"] / row["tasks"]
        lines.append(f"| {name} | {row['auto']} of {row['tasks']} | {asks:.2f} | {row['asr']} of {row['pairs']} |")
    row = first["all"]
    lines += ["", f"{row['text_only']} further pairs ask for words only, which no gate on calls can stop."]
    return "\n".join(lines) + "\n"


def settings(quick: bool) -> list[Setting]:
    """The rows of the table."""
    main = [Setting(mode) for mode in attackers.MODES]
    if quick:
        return main
    bare = [Setting(mode, words=False) for mode in attackers.MODES]
    return [*main, Setting(approves=True), *bare, Setting(words=False, approves=True), Setting(flipped=True)]


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--out", type=Path, default=HERE)
    parser.add_argument(
        "--quick", action="store_true", help="only the three attackers with the user's words and a perfect person"
    )
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--paraphrases", action="store_true", help="only the tasks in other words (words/agentdojo.toml)")
    chosen = parser.parse_args()
    if chosen.paraphrases:
        with get_context("spawn").Pool(chosen.jobs) as pool:
            rows = pool.map(paraphrased, attackers.MODES, chunksize=1)
        (chosen.out / "words").mkdir(parents=True, exist_ok=True)
        (chosen.out / "words" / "paraphrases.json").write_text(json.dumps(rows, indent=1, ensure_ascii=False) + "\n")
        (chosen.out / "words" / "paraphrases.md").write_text("# AgentDojo's tasks in other words\n\n" + other_words(rows))
        print(other_words(rows), *(f"asked: {prompt}" for prompt in rows[0]["asking"]), sep="\n")
        return
    with get_context("spawn").Pool(chosen.jobs) as pool:
        results = pool.map(measure, settings(chosen.quick), chunksize=1)
    chosen.out.mkdir(parents=True, exist_ok=True)
    (chosen.out / "results.json").write_text(json.dumps(results, indent=1) + "\n")
    text = table(results)
    (chosen.out / "results.md").write_text("# AgentDojo v1.2.2, replayed with an obedient agent\n\n" + text)
    print(text)


if __name__ == "__main__":
    main()
