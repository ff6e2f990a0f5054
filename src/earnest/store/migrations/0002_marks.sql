-- Objects of stores that untrusted values were written to: reading them back is untrusted, in every conversation.
CREATE TABLE marks (
  principal TEXT NOT NULL, server TEXT NOT NULL, object TEXT NOT NULL, receipt TEXT NOT NULL,
  PRIMARY KEY (principal, server, object)
) WITHOUT ROWID;
