"""The conversation key of a client's host process.

Theory. A host has a conversation of its own, `(principal, process:HOST)`. What a host starts does its host's bidding: a model
with a shell starts any program it likes, and if that program had a conversation of its own it would begin clean and could carry
out what the model has read. So where an ancestor is a host too, or a server of ours, the key is
`(principal, process:OUTER, process:INNER)`: OUTER the outermost such ancestor, INNER the one below it that leads to the client;
what is deeper is INNER's. It starts with all that OUTER sees, and what it sees OUTER has seen (`pdp.conversations`).

Processes only show who started whom while they run, and hosts come in any order. So a key once found for a process stays: below
a host that has ended it stays below it, and one that had a key of its own before its starter was known as a host goes on as one
conversation under both.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from earnest.core.flow import Key
from earnest.gateway.process.peers import Process, nesting
from earnest.pdp.conversations import Conversations, process_part

Known = Callable[[], frozenset[tuple[int, int]]]


class HostKeys:
    """Keys of hosts. `hosts`: the processes that are known as hosts or as servers of ours; `servers`: the latter alone."""

    def __init__(self, conversations: Conversations, hosts: Known, servers: Known) -> None:
        self._conversations = conversations
        self._hosts = hosts
        self._servers = servers

    def of(self, principal: str, chain: Sequence[Process]) -> Key:
        """The key of `chain[0]`, whose ancestors are the rest; of the principal where there is none. Raises E14xx where what it
        starts with cannot be kept."""
        if not chain:
            return (principal,)
        hosts = self._hosts()

        def known(one: Process) -> bool:
            # Clients over HTTP are known by their conversations alone.
            return one.key in hosts or (principal, _part(one)) in self._conversations

        found = nesting(chain, known)
        own = (principal, _part(found[-1]))
        if len(found) == 1:
            return self._conversations.below(own) or own
        key = (principal, _part(found[0]), _part(found[1]))
        if found[0].key in self._servers():
            # Whose bidding a server does is not known: anybody's, then.
            self._conversations.open(key[:2], minted=False)
        self._conversations.open(key, minted=False)
        if own in self._conversations:
            self._conversations.join(own, key)
        return key


def _part(one: Process) -> str:
    return process_part(one.pid, str(one.start))

