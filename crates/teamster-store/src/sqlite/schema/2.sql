-- Schema 2.

-- Whether the agent has the message of a turn that has joined another one.
ALTER TABLE turn ADD COLUMN taken INTEGER NOT NULL DEFAULT 0;

-- Whether an attempt has called a tool since the turn was queued.
ALTER TABLE turn ADD COLUMN ran_tools INTEGER NOT NULL DEFAULT 0;
UPDATE turn SET ran_tools = 1 WHERE progress = 2 AND ended_at IS NULL;

-- Messages and answers, without the events between them. A query uses it only with this very condition.
CREATE INDEX event_message ON event (conversation, seq)
    WHERE kind IN ('turn_queued', 'turn_edited', 'done', 'conversation_restarted');

-- The last event of the conversation when the session was stored: the agent knows nothing later.
ALTER TABLE session ADD COLUMN seen INTEGER NOT NULL DEFAULT 0;

-- Positions that the store remembers: `pruned` is the last one of the feed that retention has deleted.
CREATE TABLE mark (
    name  TEXT    NOT NULL PRIMARY KEY,
    value INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- What names files. A query uses these indexes only with these very conditions.
CREATE INDEX turn_file ON turn (key) WHERE instr(details, '"hash"') > 0;
CREATE INDEX event_file ON event (position) WHERE kind = 'message_sent';
