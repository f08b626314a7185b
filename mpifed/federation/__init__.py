"""A server that calls and clients that answer, wherever the clients live.

- ``server``, ``calls``: what a method's round calls, a ``Federation``; ``peers``: without a server, a ``Network``
- ``host``, ``local``, ``view``, ``samples``: where clients live, and what a client method sees of them, the ``f``
- ``request``, ``stage``, ``transport``, ``ledger``, ``ids``: what travels, what it passes on its way, what is charged
- ``sums``, ``running_sums``: sums of replies that have the same bits on any number of ranks
- ``participation``, ``schedule``: who takes part, and when; ``evaluation``, ``ending``, ``saving``: what follows
- ``setup``, ``method``, ``traits``: what all of these know of a run; ``…_guards``, ``checked_…``: checks of own classes
"""
