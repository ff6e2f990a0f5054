"""Arguments that a tool takes and that get somewhere: from its schema, its words, the fixture and what other tools answered."""
