"""Parts of a run beyond the plain rounds: a folder for each, which a study has only where its settings ask for it.

- ``settings``, ``stop``: the tables of an experiment file, and when a run ends
- ``feature``, ``listed``: what a feature is, which ones there are, and when a study has them
- ``rule``, ``plain``, ``findings``: settings that do not go together, and the sentences that say so
- ``matching``: which method runs on which problem
"""
