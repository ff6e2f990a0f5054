"""The policy reference, made from the code that it describes."""

from __future__ import annotations

from earnest.config.policy.load import PRESETS, preset_text
from earnest.core.vocabulary import FUNCTIONS, WORDS

_HEAD = """<!-- Made by `python -m earnest.cli.policy reference`. Change the code, not this file. -->
# Policy reference

A policy is a TOML file. `earnest.toml` names it (`policy = "policy.toml"`) or holds it (`[policy]`).

```toml
preset = "balanced"          # {presets}, none

allow = ["notes/list_*"]     # lists: `server/tool` with * and ?, or mcp__server__tool
ask   = ["files/write"]
deny  = ["mcp__shell"]       # a whole server

[[rule]]
name = "nothing leaves after private data was read"
when = "tool.can_exfiltrate && flow.private && server.trust != 'trusted'"
then = "deny"                # allow, ask, deny
because = "Private data stays in the house"   # optional: what the person reads

[[rule]]
name = "our own tracker may be told"
when = "server.name == 'tracker'"
then = "allow"
flow = "accept"              # optional: what the flow rules say of such a call is accepted

[[floor.rule]]               # the organisation's; may not allow
name = "no deletes"
when = "tool.destructive && tool.name.startsWith('delete')"
then = "deny"

[[test]]                     # run by `earnest policy test`
name = "a delete is refused"
given = {{ tool = "files/delete_file", trust = "trusted", claims = {{ destructive = true }} }}
expect = "deny"
rule = "floor/no deletes"    # optional: this rule is among the reasons
```

## How a call is decided

1. **floor**: what it says always counts, and nothing lowers it. It stands as `[[floor.rule]]` (and `ask` and
   `deny` under `[floor]`) in the
   policy, or in a file of its own with `[[rule]]`, `ask` and `deny`.
2. **rules**: the `[[rule]]` tables and the lists. If any matches, they decide.
3. **preset**: decides what no rule matches. With `preset = "none"` such a call asks.

Within a tier deny beats ask beats allow; order does not count. The verdict is the worst of floor, deciding tier,
flow rules and pin
gate. Only an endorsement, the user's own words or a matching rule with `flow = "accept"` lowers what the flow
rules say.

An entry in `allow` speaks of tool calls; one in `ask` or `deny` of everything called by a matching name.

## Conditions

Conditions are [CEL](https://cel.dev). A rule without `when` always matches. A condition that cannot be evaluated
(a field that is not
there, a number ordered against a string) counts as matched in a rule that asks or denies, and as unmatched in a
rule that allows; `false && …` and
`true || …` are known whatever the other side is. Test a field first with `has(args.x) && …`.

Unknown names, types that never fit, conditions that are never or always true and arguments that two parsers could
read in two ways
(duplicate keys) are refused: the first three when the policy is read, the last when a rule reads a call's arguments.

Integers in arguments are exact whatever their size; numbers with a point or an exponent are doubles; the two
compare by value.
A boolean is no number. Integer division rounds towards zero. Integers do not overflow.

### Names

| name | type | meaning |
|---|---|---|
"""

_TAIL = """
## Situations

`given` of a test, and the options of `earnest policy explain`, say: `tool` (`SERVER/TOOL`, required), `title`,
`trust`, `client`, `asks`, `method`,
`claims` (a table of hints that the server claims), the seven names of a profile (what the operator says), `flow`
(a list of `private`, `untrusted`,
`endorsed`), `pin` (`holds`, `tightened`, `loosened`, `refused`, `unseen`) and `args`. What is not said is what
earnest assumes of a stranger.

## Commands

- `earnest policy check FILE` reads a policy and looks for rules that never decide, states that nothing covers, and
  riskier calls that are allowed more.
- `earnest policy test FILE` runs the `[[test]]` tables.
- `earnest policy explain SERVER/TOOL` says what a policy answers to one call, and why.
- `earnest policy replay FILE` decides receipts again (`earnest receipts --json`) and shows what changes.

Each takes `--json`. Exit codes: 0 fine, 1 findings, a failed test, a call that does not run or a changed decision,
2 usage or a policy that cannot be used.
"""


def reference() -> str:
    """The whole page, in Markdown."""
    rows = []
    for word in WORDS.values():
        if word.name.startswith("tool.basis."):
            continue
        kind = " ".join(f"`'{value}'`" for value in word.values) if word.values else word.kind
        rows.append(f"| `{word.name}` | {kind}{' (may be absent)' if word.optional else ''} | {word.doc} |")
    bases = WORDS["tool.basis.read_only"].values
    bases_said = " ".join(f"`'{basis}'`" for basis in bases)
    rows.append(f"| `tool.basis.NAME` | {bases_said} | how `tool.NAME` is known, for the seven above |")
    rows.append("| `args.X` | whatever the call carries | its arguments; also `args['X']`, `args.list[0]` |")
    functions = [f"| `{name}` | {doc} |" for name, doc in FUNCTIONS.items()]
    presets = [f"\n### {name}\n\n```toml\n{preset_text(name).strip()}\n```\n" for name in PRESETS]
    return (
        _HEAD.format(presets=", ".join(PRESETS))
        + "\n".join(rows)
        + "\n\n### Functions and operators\n\n"
        + "`== != < <= > >= in && || ! ? : + - * / %`, lists `[…]`, and:\n\n| function | meaning |\n|---|---|\n"
        + "\n".join(functions)
        + "\n\n## Presets\n"
        + "".join(presets)
        + _TAIL
    )
