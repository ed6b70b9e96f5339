-- Schema 1. Times are milliseconds since 1970 in UTC, ids are UUIDs of 16 bytes, documents are JSON.
-- Codes of states are in src/sqlite/values.rs.

CREATE TABLE conversation (
    key          INTEGER PRIMARY KEY AUTOINCREMENT,
    id           BLOB    NOT NULL UNIQUE,
    channel      TEXT    NOT NULL,
    chat         TEXT    NOT NULL,
    thread       TEXT    NOT NULL,
    agent        TEXT    NOT NULL,
    title        TEXT,
    settings     TEXT    NOT NULL,
    version      INTEGER NOT NULL,
    last_seq     INTEGER NOT NULL DEFAULT 0,
    oldest_seq   INTEGER NOT NULL DEFAULT 1,
    epoch        INTEGER NOT NULL DEFAULT 0,
    worker       TEXT,
    lease_until  INTEGER,
    running_turn BLOB,
    paused_until INTEGER,
    free_since   INTEGER NOT NULL DEFAULT 0,
    -- Since when it can be claimed: the end of its lease, or the time from which its next turn may run.
    ready_at     INTEGER,
    created_at   INTEGER NOT NULL,
    UNIQUE (channel, chat, thread),
    CHECK ((worker IS NULL) = (lease_until IS NULL) AND (worker IS NULL) = (running_turn IS NULL))
) STRICT;
CREATE INDEX conversation_ready ON conversation (ready_at, key) WHERE ready_at IS NOT NULL;
CREATE INDEX conversation_held ON conversation (worker) WHERE worker IS NOT NULL;

CREATE TABLE turn (
    key             INTEGER PRIMARY KEY AUTOINCREMENT,
    id              BLOB    NOT NULL UNIQUE,
    conversation    INTEGER NOT NULL REFERENCES conversation ON DELETE CASCADE,
    message         BLOB    NOT NULL UNIQUE,
    author          TEXT    NOT NULL,
    text            TEXT    NOT NULL,
    details         TEXT    NOT NULL,
    mode            INTEGER NOT NULL,
    accepted_at     INTEGER NOT NULL,
    state           INTEGER NOT NULL,
    attempts        INTEGER NOT NULL DEFAULT 0,
    progress        INTEGER NOT NULL DEFAULT 0,
    joined          BLOB,
    not_before      INTEGER NOT NULL,
    abort_requested INTEGER NOT NULL DEFAULT 0,
    result          TEXT,
    error_code      TEXT,
    input_tokens    INTEGER NOT NULL DEFAULT 0,
    output_tokens   INTEGER NOT NULL DEFAULT 0,
    cost_micros     INTEGER NOT NULL DEFAULT 0,
    queued_seq      INTEGER NOT NULL,
    started_at      INTEGER,
    ended_at        INTEGER
) STRICT;
CREATE INDEX turn_conversation ON turn (conversation, key);
CREATE INDEX turn_queued ON turn (conversation, key) WHERE state = 0;
-- At most one turn of a conversation runs. Turns that joined it do not count.
CREATE UNIQUE INDEX turn_running ON turn (conversation) WHERE state = 1 AND joined IS NULL;
CREATE INDEX turn_joined ON turn (joined) WHERE joined IS NOT NULL;
CREATE INDEX turn_ended ON turn (ended_at) WHERE ended_at IS NOT NULL;

CREATE TABLE channel_id (
    channel TEXT NOT NULL,
    id      TEXT NOT NULL,
    turn    INTEGER REFERENCES turn ON DELETE SET NULL,
    PRIMARY KEY (channel, id)
) STRICT, WITHOUT ROWID;
CREATE INDEX channel_id_turn ON channel_id (turn);

CREATE TABLE idempotency (
    scope     TEXT NOT NULL,
    key       TEXT NOT NULL,
    body_hash BLOB NOT NULL,
    turn      INTEGER REFERENCES turn ON DELETE SET NULL,
    PRIMARY KEY (scope, key)
) STRICT, WITHOUT ROWID;
CREATE INDEX idempotency_turn ON idempotency (turn);

CREATE TABLE event (
    -- The position in the feed. AUTOINCREMENT never uses a number again.
    position     INTEGER PRIMARY KEY AUTOINCREMENT,
    conversation INTEGER NOT NULL REFERENCES conversation ON DELETE CASCADE,
    seq          INTEGER NOT NULL,
    kind         TEXT    NOT NULL,
    turn         BLOB,
    at           INTEGER NOT NULL,
    body         TEXT    NOT NULL,
    UNIQUE (conversation, seq)
) STRICT;

CREATE TABLE session (
    conversation INTEGER NOT NULL REFERENCES conversation ON DELETE CASCADE,
    agent        TEXT    NOT NULL,
    id           TEXT    NOT NULL,
    host         TEXT    NOT NULL,
    PRIMARY KEY (conversation, agent)
) STRICT, WITHOUT ROWID;

CREATE TABLE permission (
    key          INTEGER PRIMARY KEY AUTOINCREMENT,
    id           BLOB    NOT NULL UNIQUE,
    conversation INTEGER NOT NULL REFERENCES conversation ON DELETE CASCADE,
    turn         INTEGER NOT NULL REFERENCES turn ON DELETE CASCADE,
    epoch        INTEGER NOT NULL,
    body         TEXT    NOT NULL,
    requested_at INTEGER NOT NULL,
    deadline     INTEGER NOT NULL,
    outcome      INTEGER,
    closed_by    TEXT,
    message      TEXT,
    closed_at    INTEGER,
    CHECK ((outcome IS NULL) = (closed_at IS NULL))
) STRICT;
CREATE INDEX permission_turn ON permission (turn);
CREATE INDEX permission_conversation ON permission (conversation, key);
CREATE INDEX permission_open ON permission (key) WHERE outcome IS NULL;

CREATE TABLE delivery (
    key          INTEGER PRIMARY KEY AUTOINCREMENT,
    id           BLOB    NOT NULL UNIQUE,
    unique_key   TEXT    NOT NULL UNIQUE,
    channel      TEXT    NOT NULL,
    chat         TEXT    NOT NULL,
    thread       TEXT    NOT NULL,
    conversation BLOB,
    turn         BLOB,
    body         TEXT    NOT NULL,
    state        INTEGER NOT NULL,
    attempts     INTEGER NOT NULL DEFAULT 0,
    not_before   INTEGER NOT NULL,
    epoch        INTEGER NOT NULL DEFAULT 0,
    worker       TEXT,
    lease_until  INTEGER,
    -- Since when it can be claimed. NULL if it has ended.
    ready_at     INTEGER,
    error        TEXT,
    created_at   INTEGER NOT NULL,
    ended_at     INTEGER
) STRICT;
CREATE INDEX delivery_ready ON delivery (ready_at, key) WHERE ready_at IS NOT NULL;
CREATE INDEX delivery_chat ON delivery (channel, chat, key) WHERE ready_at IS NOT NULL;
CREATE INDEX delivery_held ON delivery (worker) WHERE worker IS NOT NULL;
CREATE INDEX delivery_conversation ON delivery (conversation, key);
CREATE INDEX delivery_turn ON delivery (turn, key);
CREATE INDEX delivery_state ON delivery (state, key);
CREATE INDEX delivery_ended ON delivery (ended_at) WHERE ended_at IS NOT NULL;

CREATE TABLE delivery_part (
    delivery   INTEGER NOT NULL REFERENCES delivery ON DELETE CASCADE,
    part       INTEGER NOT NULL,
    sent       INTEGER NOT NULL,
    service_id TEXT,
    PRIMARY KEY (delivery, part)
) STRICT, WITHOUT ROWID;

CREATE TABLE schedule (
    key          INTEGER PRIMARY KEY AUTOINCREMENT,
    id           BLOB    NOT NULL UNIQUE,
    conversation INTEGER NOT NULL REFERENCES conversation ON DELETE CASCADE,
    body         TEXT    NOT NULL,
    next_at      INTEGER,
    last_at      INTEGER,
    created_at   INTEGER NOT NULL
) STRICT;
CREATE INDEX schedule_conversation ON schedule (conversation, key);
CREATE INDEX schedule_next ON schedule (next_at) WHERE next_at IS NOT NULL;

CREATE TABLE usage (
    day           INTEGER NOT NULL,
    agent         TEXT    NOT NULL,
    conversation  BLOB    NOT NULL,
    author        TEXT    NOT NULL,
    input_tokens  INTEGER NOT NULL,
    output_tokens INTEGER NOT NULL,
    cost_micros   INTEGER NOT NULL,
    PRIMARY KEY (day, agent, conversation, author)
) STRICT, WITHOUT ROWID;

CREATE TABLE budget (
    scope        TEXT    NOT NULL,
    day          INTEGER NOT NULL,
    spent_micros INTEGER NOT NULL,
    PRIMARY KEY (scope, day)
) STRICT, WITHOUT ROWID;

CREATE TABLE reservation (
    turn          INTEGER NOT NULL REFERENCES turn ON DELETE CASCADE,
    scope         TEXT    NOT NULL,
    day           INTEGER NOT NULL,
    amount_micros INTEGER NOT NULL,
    PRIMARY KEY (turn, scope)
) STRICT, WITHOUT ROWID;
CREATE INDEX reservation_scope ON reservation (scope, day);

CREATE TABLE token (
    key        INTEGER PRIMARY KEY AUTOINCREMENT,
    id         BLOB    NOT NULL UNIQUE,
    hash       BLOB    NOT NULL UNIQUE,
    owner      TEXT    NOT NULL,
    scopes     TEXT    NOT NULL,
    created_at INTEGER NOT NULL,
    revoked_at INTEGER
) STRICT;

CREATE TABLE audit (
    number  INTEGER PRIMARY KEY AUTOINCREMENT,
    at      INTEGER NOT NULL,
    actor   TEXT    NOT NULL,
    action  TEXT    NOT NULL,
    subject TEXT    NOT NULL,
    origin  TEXT    NOT NULL,
    details TEXT    NOT NULL
) STRICT;
CREATE TRIGGER audit_is_not_changed BEFORE UPDATE ON audit
BEGIN SELECT RAISE (ABORT, 'the audit log is append-only'); END;
CREATE TRIGGER audit_is_not_deleted BEFORE DELETE ON audit
BEGIN SELECT RAISE (ABORT, 'the audit log is append-only'); END;

CREATE TABLE channel_state (
    key   TEXT NOT NULL PRIMARY KEY,
    value TEXT NOT NULL
) STRICT, WITHOUT ROWID;
