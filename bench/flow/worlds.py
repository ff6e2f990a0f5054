"""AgentDojo's environments with text of ours at chosen places, without reading its files again for each session.

Each suite's environment is read twice: once as it ships, once with a marker at every place that an attacker controls. Where
the two differ is
where an injection goes; a world with injections is a copy in which those strings are exchanged.
"""

from __future__ import annotations

import copy
import json
from typing import Any

import attackers
import yaml
from agentdojo.functions_runtime import FunctionsRuntime
from agentdojo.task_suite.load_suites import get_suites
from agentdojo.task_suite.task_suite import read_suite_file


def plain(value: Any) -> Any:
    """A tool's result as JSON data."""
    if hasattr(value, "model_dump"):
        return value.model_dump(mode="json")
    if isinstance(value, list | tuple):
        return [plain(part) for part in value]
    if isinstance(value, dict):
        return {str(key): plain(part) for key, part in value.items()}
    return value


class Suite:
    """One of the four suites, at one version of the benchmark."""

    def __init__(self, suite: Any) -> None:
        self.suite = suite
        self.name = suite.name
        self.users = suite.user_tasks
        self.attacks = suite.injection_tasks
        self._places = list(suite.get_injection_vector_defaults())
        text = read_suite_file(suite.name, "environment.yaml", suite.data_path)
        self._shipped = yaml.load(text.format(**suite.get_injection_vector_defaults()), yaml.CSafeLoader)
        self._marked = yaml.load(text.format(**{place: _mark(place) for place in self._places}), yaml.CSafeLoader)
        self._reached: dict[str, tuple[str, ...]] = {}
        self._speaks: dict[str, bool] = {}

    def world(self, user: Any, injections: dict[str, str]) -> Any:
        """A fresh environment for a user's task, with texts at these places."""
        data = _exchanged(copy.deepcopy(self._shipped), self._marked, injections)
        return user.init_environment(self.suite.environment_type.model_validate(json.loads(json.dumps(data, default=_iso))))

    def runtime(self) -> FunctionsRuntime:
        """Runs the suite's tools."""
        return FunctionsRuntime(self.suite.tools)

    def reached(self, user_id: str) -> tuple[str, ...]:
        """The places that the user's task reads, in order: where an attacker's text is met."""
        if user_id not in self._reached:
            user = self.users[user_id]
            world, runtime = self.world(user, {place: _mark(place) for place in self._places}), self.runtime()
            found: list[str] = []
            for call in user.ground_truth(world):
                result, _ = runtime.run_function(world, call.function, call.args)
                shown = json.dumps(plain(result), default=str)
                found += [place for place in self._places if _mark(place) in shown and place not in found]
            self._reached[user_id] = tuple(found)
        return self._reached[user_id]

    def speaks_only(self, attack: Any) -> bool:
        """Whether an attacker's goal takes no call at all."""
        if attack.ID not in self._speaks:
            world = self.world(next(iter(self.users.values())), {})
            self._speaks[attack.ID] = not attackers.calls(self.name, attack, world, world)
        return self._speaks[attack.ID]

    def attacked(self, task: Any, before: Any, after: Any, calls: list[Any], output: str) -> bool:
        """Whether the benchmark's own check says that a task's goal was reached."""
        from agentdojo.types import text_content_block_from_string

        return bool(self.suite._check_task_result(task, [text_content_block_from_string(output)], before, after, calls))


def suites(version: str) -> list[Suite]:
    """The four suites."""
    return [Suite(suite) for suite in get_suites(version).values()]


def _mark(place: str) -> str:
    return f"<<{place}>>"


def _exchanged(value: Any, marked: Any, injections: dict[str, str]) -> Any:
    if isinstance(marked, dict):
        if set(value) == set(marked):
            return {key: _exchanged(value[key], marked[key], injections) for key in value}
        pairs = zip(value.items(), marked.items(), strict=True)
        return {_text(old, new, injections): _exchanged(part, other, injections) for (old, part), (new, other) in pairs}
    if isinstance(marked, list):
        return [_exchanged(part, other, injections) for part, other in zip(value, marked, strict=True)]
    return _text(value, marked, injections) if isinstance(marked, str) else value


def _text(shipped: Any, marked: str, injections: dict[str, str]) -> Any:
    here = [place for place in injections if _mark(place) in marked]
    if not here:
        return shipped
    for place in here:
        marked = marked.replace(_mark(place), injections[place])
    return marked


def _iso(value: Any) -> str:
    return str(value.isoformat())
