"""The desk of a sweep in groups: what the other groups report is told, whenever it arrives."""

import pytest

from mpifed.mpi.world import World
from mpifed.sweeps import rank_groups as groups
from mpifed.sweeps.grid import points
from mpifed.sweeps.runs import FINISHED, PointRunner, SweepProgress

pytestmark = pytest.mark.mpi


class Mail:
    """A mailbox of two groups in which the other one's messages have all arrived."""

    def __init__(self, *messages):
        self.messages, self.size, self.sent = list(messages), 2, []

    def sender(self, tag):
        return 1 if self.messages else None

    def receive(self, source, tag):
        return self.messages.pop(0)

    def send(self, value, to, tag):
        self.sent.append(value)


def test_a_report_that_arrives_while_the_first_group_looks_for_a_point_is_told(tmp_path):
    todo = points({}, ["data.clients=3", "rounds=1"], ["seed=0"])
    mail = Mail((None, None, []), (0, (FINISHED, "1 round", 0.1), ["a note"]))
    runs = PointRunner(tmp_path, World(), False, SweepProgress(None, [1.0]))
    ended = list(groups.run_desk(todo, runs, World(), groups.Desk(todo, mail, runs.progress)))
    assert [(one.point, one.status) for one in ended] == [(todo[0], FINISHED)]
    assert mail.sent == [(0, False), (None, False)]
    assert runs.progress.notes == ["a note"]
