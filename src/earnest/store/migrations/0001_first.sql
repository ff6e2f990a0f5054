-- Names, times (seconds since the epoch) and JSON texts. An identity is what a server is known by, never its name.
CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;

CREATE TABLE servers (
  identity TEXT PRIMARY KEY, name TEXT NOT NULL, trust TEXT NOT NULL, trusted_at REAL NOT NULL,
  artefact TEXT NOT NULL, launch TEXT NOT NULL, seen_at REAL NOT NULL
) WITHOUT ROWID;
CREATE INDEX servers_by_name ON servers (name);

-- pin and definition: what a person was shown. pending_*: what the server says now, where it differs.
CREATE TABLE pins (
  identity TEXT NOT NULL, authorization TEXT NOT NULL, tool TEXT NOT NULL, state TEXT NOT NULL,
  pin TEXT NOT NULL, definition BLOB NOT NULL, formula INTEGER NOT NULL, seen_at REAL NOT NULL,
  pending_pin TEXT NOT NULL, pending_definition BLOB NOT NULL, pending_at REAL NOT NULL,
  PRIMARY KEY (identity, authorization, tool)
) WITHOUT ROWID;

CREATE TABLE instructions (
  identity TEXT NOT NULL, authorization TEXT NOT NULL, state TEXT NOT NULL,
  pin TEXT NOT NULL, text TEXT NOT NULL, seen_at REAL NOT NULL,
  pending_pin TEXT NOT NULL, pending_text TEXT NOT NULL, pending_at REAL NOT NULL,
  PRIMARY KEY (identity, authorization)
) WITHOUT ROWID;

CREATE TABLE operator_labels (
  identity TEXT NOT NULL, tool TEXT NOT NULL, pin TEXT NOT NULL, labels TEXT NOT NULL, source TEXT NOT NULL,
  written_at REAL NOT NULL,
  PRIMARY KEY (identity, tool)
) WITHOUT ROWID;

CREATE TABLE noise (
  identity TEXT NOT NULL, pattern TEXT NOT NULL, added_at REAL NOT NULL, PRIMARY KEY (identity, pattern)
) WITHOUT ROWID;

CREATE TABLE evidence (
  identity TEXT NOT NULL, tool TEXT NOT NULL, hint TEXT NOT NULL, pin TEXT NOT NULL, artefact TEXT NOT NULL,
  verdict TEXT NOT NULL, detail TEXT NOT NULL, seen_at REAL NOT NULL,
  PRIMARY KEY (identity, tool, hint, pin, artefact)
) WITHOUT ROWID;

CREATE TABLE flow_labels (
  key TEXT PRIMARY KEY, bits INTEGER NOT NULL, causes TEXT NOT NULL, minted INTEGER NOT NULL,
  announced INTEGER NOT NULL, touched_at REAL NOT NULL, parent TEXT NOT NULL
) WITHOUT ROWID;

CREATE TABLE approvals (
  id TEXT PRIMARY KEY, state TEXT NOT NULL
    CHECK (state IN ('pending', 'approved', 'denied', 'withdrawn', 'expired', 'used')),
  lock TEXT NOT NULL, prompt TEXT NOT NULL, channel TEXT NOT NULL, created REAL NOT NULL, decided REAL NOT NULL,
  expires REAL NOT NULL, by TEXT NOT NULL
) WITHOUT ROWID;
CREATE INDEX approvals_by_lock ON approvals (lock, state);
CREATE INDEX approvals_by_state ON approvals (state, expires);

CREATE TABLE endorsements (
  id TEXT PRIMARY KEY, conversation TEXT NOT NULL, kind TEXT NOT NULL, "values" TEXT NOT NULL,
  created REAL NOT NULL, expires REAL NOT NULL, receipt TEXT NOT NULL
) WITHOUT ROWID;
CREATE INDEX endorsements_by_conversation ON endorsements (conversation);

CREATE TABLE aliases (
  scope TEXT NOT NULL, identity TEXT NOT NULL, tool TEXT NOT NULL, alias TEXT NOT NULL, made_at REAL NOT NULL,
  PRIMARY KEY (scope, identity, tool), UNIQUE (scope, alias)
) WITHOUT ROWID;

CREATE TABLE approved_configs (
  path TEXT PRIMARY KEY, sha256 TEXT NOT NULL, approved_at REAL NOT NULL
) WITHOUT ROWID;

CREATE TABLE policies (
  name TEXT PRIMARY KEY, text TEXT NOT NULL, sha256 TEXT NOT NULL, saved_at REAL NOT NULL, saved_by TEXT NOT NULL
) WITHOUT ROWID;

CREATE TABLE receipt_heads (
  writer TEXT PRIMARY KEY, seq INTEGER NOT NULL, head TEXT NOT NULL, time REAL NOT NULL, signature TEXT NOT NULL
) WITHOUT ROWID;
