-- Schema 2.

-- Whether the agent has the message of a turn that has joined another one.
ALTER TABLE turn ADD COLUMN taken INTEGER NOT NULL DEFAULT 0;

-- Whether an attempt has called a tool since the turn was queued.
ALTER TABLE turn ADD COLUMN ran_tools INTEGER NOT NULL DEFAULT 0;
UPDATE turn SET ran_tools = 1 WHERE progress = 2 AND ended_at IS NULL;
