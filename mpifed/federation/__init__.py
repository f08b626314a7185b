"""The engine of a run: a server that calls and clients that answer, wherever the clients live.

- ``server``, ``calls``: the ``Federation`` that a method's round calls; ``peers``: its counterpart on graphs
- ``host``, ``local``, ``view``: the clients of a rank, and the ``f`` that a client method gets
- ``request``, ``stage``, ``transport``, ``ledger``, ``ids``: messages, the stages that they pass, and their cost
- ``sums``: sums of replies that have the same bits on any number of ranks
- ``participation``, ``schedule``: which clients take part, and when; ``evaluation``, ``ending``, ``saving``: after it
- ``setup``, ``method``, ``traits``: facts of a run and its method; ``…_guards``: checks of users' classes
"""
