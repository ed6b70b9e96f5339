complete --keep-order --exclusive --command teamster --arguments "(COMPLETE=fish teamster -- (commandline --current-process --tokenize --cut-at-cursor) (commandline --current-token))"
