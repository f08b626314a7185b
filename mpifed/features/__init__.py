"""Features of a run beyond the plain rounds, a folder for each; a study loads only those that its settings ask for.

- ``settings``, ``stop``: the tables of an experiment file, and when a run ends
- ``feature``: the base class of plug-ins
- ``conflict``: what a row of the table of conflicts is; ``conflicts``, ``message_conflicts``: the table; ``conditions``
- ``matching``: methods and the problems that they run on
"""
