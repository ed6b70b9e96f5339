-- Schema 2.

-- Whether the agent has the message of a turn that has joined another one.
ALTER TABLE turn ADD COLUMN taken INTEGER NOT NULL DEFAULT 0;
