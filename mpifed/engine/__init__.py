"""Plug-ins that know hosts and servers from the inside, which users' plug-ins do not; a study loads those it asks for.

- ``plugin``: their base class; ``listed``: all plug-ins, when a study has which; ``user_plugin``: guards of a user's
- ``asynchrony``, ``graph``, ``devices``: who arrives when, clients without a server, clients on a GPU
- ``by_client``, ``unseen``: numbers of each client, and of clients that do not train
- ``promises``, ``own_classes``, ``block_sizes``: what each part keeps, guards of a user's class, sizes of blocks
"""
