#!/bin/sh
# The agent's CLI in tests: does what the test says in $FAKE_CLI.
eval "$FAKE_CLI"
