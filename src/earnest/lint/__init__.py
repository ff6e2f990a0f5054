"""Lint: what is wrong, doubtful or missing in what a server says of its own tools.

Theory. An audit is one file in `audits/`, listed in `registry`; it looks at one server and yields findings, and knows nothing
of where the list came from (`reading`, `sources`) or where its findings go (`outputs`). What a description says is read once
for each tool by `language`, with a lexicon of effect verbs that is data (`effects.toml`). Nothing here starts a server and
nothing calls a model.

Confidence says how sure an audit is that who believes the annotations is misled about this tool; severity says how much that
costs. A hint that is missing where its default is right is a fact, but misleads nobody: its confidence is low.
"""
