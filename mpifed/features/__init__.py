"""Parts of a run beyond the plain rounds: a folder for each, which a study has only where its settings ask for it."""
