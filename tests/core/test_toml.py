"""Tables and their dotted keys."""

from mpifed.core.toml import flat, from_toml


def test_nested_tables_become_dotted_keys_in_their_order():
    table = from_toml('seed = 3\n[data]\nname = "a"\n[data.partition]\nname = "iid"\n[stop]\n', "a text")
    assert list(flat(table).items()) == [("seed", 3), ("data.name", "a"), ("data.partition.name", "iid")]
