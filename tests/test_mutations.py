"""Mutations of the package are where they say, and the tests that they name kill them."""

import pytest

from tests.mutations import find_file, find_tests, main, read_mutations

MUTATIONS = read_mutations()


def test_every_mutation_changes_one_line_that_is_there_and_names_tests_that_are_there():
    assert len(MUTATIONS) >= 60
    assert sum(not one.survives for one in MUTATIONS) >= 0.9 * len(MUTATIONS)
    for one in MUTATIONS:
        assert find_file(one)
        assert find_tests(one)
        assert one.old != one.new


@pytest.mark.slow
def test_the_default_tests_kill_all_of_which_nothing_else_is_said(capsys):
    assert main(["--workers", "2"]) == 0, capsys.readouterr().out
